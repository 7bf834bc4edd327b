//! The same pictures as pixels, with the fonts of this machine.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Options, Tree, fontdb};

/// So many pixels for a unit of the picture: sharp on paper and on screens of twice the density.
const PIXELS: f32 = 2.0;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// Text cannot be drawn.
    #[error(
        "no font was found on this machine: install one, such as Debian's fonts-dejavu-core, or take --svg"
    )]
    NoFont,
    /// The document is none of ours.
    #[error("the picture cannot be drawn: {0}")]
    Document(#[from] usvg::Error),
    /// It has no size, or memory does not take it.
    #[error("the picture has no room: {0} x {1} pixels")]
    Size(u32, u32),
    /// What was drawn cannot be written as PNG.
    #[error("the picture cannot be written as PNG: {0}")]
    Encoding(String),
}

/// Draws pictures with the fonts that it found.
pub struct Painter {
    options: Options<'static>,
}

impl Painter {
    /// Looks for fonts.
    ///
    /// # Errors
    /// If there is none.
    pub fn new() -> Result<Self, PngError> {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        Self::with(fonts)
    }

    fn with(mut fonts: fontdb::Database) -> Result<Self, PngError> {
        let sans = ["Arial", "Liberation Sans", "DejaVu Sans", "Helvetica", "Noto Sans"];
        let has = |name: &&str| {
            fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == name))
        };
        let any = || fonts.faces().find_map(|face| Some(face.families.first()?.0.clone()));
        let found = sans.iter().find(|name| has(name)).map(|name| (*name).to_owned());
        fonts.set_sans_serif_family(found.or_else(any).ok_or(PngError::NoFont)?);
        Ok(Self { options: Options { fontdb: Arc::new(fonts), ..Options::default() } })
    }

    /// The picture as a PNG file.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn paint(&self, svg: &str) -> Result<Vec<u8>, PngError> {
        let tree = Tree::from_str(svg, &self.options)?;
        let size = tree.size();
        let pixels = |length: f32| (length * PIXELS).ceil() as u32;
        let (width, height) = (pixels(size.width()), pixels(size.height()));
        let mut pixmap = Pixmap::new(width, height).ok_or(PngError::Size(width, height))?;
        resvg::render(&tree, Transform::from_scale(PIXELS, PIXELS), &mut pixmap.as_mut());
        pixmap.encode_png().map_err(|error| PngError::Encoding(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the picture has in words is there as ink, in the fonts of this machine; where it has none that is said.
    #[test]
    fn words_are_drawn() {
        let svg = |text: &str| {
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 100 20\" width=\"100\" height=\"20\">\
                 <style>text{{font-family:Arial,'DejaVu Sans',sans-serif;font-size:12px;fill:#111}}@media(prefers-color-scheme:dark){{text{{fill:#fff}}}}</style>\
                 <rect width=\"100\" height=\"20\" style=\"fill:#fff\"/><text x=\"5\" y=\"15\">{text}</text></svg>"
            )
        };
        let painter = match Painter::new() {
            Err(PngError::NoFont) => return,
            painter => painter.unwrap(),
        };
        let dark = |text: &str| {
            let pixmap = Pixmap::decode_png(&painter.paint(&svg(text)).unwrap()).unwrap();
            assert_eq!((pixmap.width(), pixmap.height()), (200, 40));
            pixmap.pixels().iter().filter(|pixel| pixel.red() < 100).count()
        };
        assert_eq!(dark(""), 0);
        assert!(dark("dualpi2") > 100);
    }

    #[test]
    fn without_a_font_there_is_no_picture() {
        let none = Painter::with(fontdb::Database::new());
        assert!(matches!(none, Err(PngError::NoFont)));
    }
}
