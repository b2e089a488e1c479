package supervisor

// fifo is a queue in a ring that grows.
type fifo struct {
	ring []*delivery
	head int
	n    int
}

func (q *fifo) len() int { return q.n }

func (q *fifo) push(d *delivery) {
	if q.n == len(q.ring) {
		grown := make([]*delivery, max(8, 2*q.n))
		for i := range q.n {
			grown[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = d
	q.n++
}

func (q *fifo) pop() *delivery {
	if q.n == 0 {
		return nil
	}
	d := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return d
}
