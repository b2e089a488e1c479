package connect

import "sync"

// maxScratch is the largest buffer that is kept for the next request, in bytes.
const maxScratch = 64 << 10

// scratch lends buffers for what a request needs only while it is worked on. What
// is made in one must be copied before it is given back.
type scratch struct{ pool sync.Pool }

// borrow returns an empty buffer.
func (s *scratch) borrow() *[]byte {
	if kept, ok := s.pool.Get().(*[]byte); ok {
		return kept
	}
	fresh := make([]byte, 0, 4096)
	return &fresh
}

// giveBack keeps the buffer, as it has grown, unless it has grown too large.
func (s *scratch) giveBack(buffer *[]byte) {
	if cap(*buffer) <= maxScratch {
		*buffer = (*buffer)[:0]
		s.pool.Put(buffer)
	}
}
