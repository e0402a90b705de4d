package site

// Share is the preview that a chat shows next to a link, as Open Graph tags (https://ogp.me). Chats keep it after an
// entry is delisted, and people see it without having opened the page. So it never has a name.
type Share struct{ Title, About string }
