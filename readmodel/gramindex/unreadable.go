package gramindex

// Unreadable is a block of which every Find fails: what damage comes to, for tests.
func Unreadable() *Block { return &Block{n: 1} }
