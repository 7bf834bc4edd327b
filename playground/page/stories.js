function storySection() {}
function tellStory() {}
function endStory() {}
