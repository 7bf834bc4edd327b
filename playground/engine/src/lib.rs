//! dualq's model for WebAssembly.
//!
//! The border is six functions and two imports, by hand: text goes in and out as JSON, packets out as records of one size, and neither
//! needs a generator of glue whose version would have to match. Whoever calls writes a request to where [`take`] says, calls [`call`], and
//! reads what [`reply`] and [`events`] point to before the next call. An instance is one engine with at most one simulation at work;
//! its memory goes when the instance does.
//!
//! Requests are those of `request::Request`. Every status but 0 comes with one line that says what is wrong.

#![expect(unsafe_code, reason = "what crosses the border of WebAssembly by name is written so")]

mod packed;
mod passages;
mod request;
mod stepwise;

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic;

use request::{Answer, Refusal, Request};
use stepwise::Stepwise;

// Both are called by this thread only, and what they do to memory is theirs: they are handed numbers, and a place to read from.
#[link(wasm_import_module = "dualq")]
unsafe extern "C" {
    /// So many of so many seconds of simulated time have passed. Anything but 0 ends the run.
    safe fn progress(passed_s: f64, total_s: f64) -> i32;
    /// The engine has a fault and will not go on: the text that explains it.
    safe fn panicked(text: *const u8, length: usize);
}

/// Tells how far it is; whoever wants to stop breaks.
fn tell(passed_s: f64, total_s: f64) -> ControlFlow<()> {
    match progress(passed_s, total_s) {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    }
}

/// What is between calls.
#[derive(Default)]
struct Engine {
    request: Vec<u8>,
    reply: String,
    events: Vec<u8>,
    simulation: Option<Stepwise>,
}

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::default();
}

/// Makes room for a request of so many bytes, and says where.
// SAFETY: nothing else in the module has this name, nor those of the other functions.
#[unsafe(no_mangle)]
pub extern "C" fn take(length: usize) -> *mut u8 {
    ENGINE.with_borrow_mut(|engine| {
        engine.request.clear();
        engine.request.resize(length, 0);
        engine.request.as_mut_ptr()
    })
}

/// Answers the request that was put where [`take`] said: 0, or the status of a `Refusal`.
// SAFETY: as for `take`.
#[unsafe(no_mangle)]
pub extern "C" fn call() -> i32 {
    panic::set_hook(Box::new(|fault| {
        let text = fault.to_string();
        panicked(text.as_ptr(), text.len());
    }));
    ENGINE.with_borrow_mut(|engine| {
        engine.events.clear();
        let answer = Request::read(&engine.request)
            .and_then(|request| request.answer(&mut engine.simulation));
        let (status, reply) = match answer {
            Ok(Answer { text, events }) => {
                engine.events = events;
                (0, text)
            }
            Err(Refusal { status, message }) => (status as i32, message),
        };
        engine.reply = reply;
        status
    })
}

/// Where the reply is, in UTF-8.
// SAFETY: as for `take`.
#[unsafe(no_mangle)]
pub extern "C" fn reply() -> *const u8 {
    ENGINE.with_borrow(|engine| engine.reply.as_ptr())
}

/// How many bytes it has.
// SAFETY: as for `take`.
#[unsafe(no_mangle)]
pub extern "C" fn reply_length() -> usize {
    ENGINE.with_borrow(|engine| engine.reply.len())
}

/// Where the packets are that were seen: records of `packed::RECORD` bytes.
// SAFETY: as for `take`.
#[unsafe(no_mangle)]
pub extern "C" fn events() -> *const u8 {
    ENGINE.with_borrow(|engine| engine.events.as_ptr())
}

/// How many bytes these have.
// SAFETY: as for `take`.
#[unsafe(no_mangle)]
pub extern "C" fn events_length() -> usize {
    ENGINE.with_borrow(|engine| engine.events.len())
}
