package conns

// queue is a doubly linked list of slots, the longest waiting first.
type queue struct {
	by         int // which links of the slots it uses
	head, tail *Slot
}

// link holds the neighbours of a slot in a queue.
type link struct{ prev, next *Slot }

func (q *queue) push(s *Slot) {
	s.links[q.by] = link{prev: q.tail}
	if q.tail == nil {
		q.head = s
	} else {
		q.tail.links[q.by].next = s
	}
	q.tail = s
}

func (q *queue) remove(s *Slot) {
	l := s.links[q.by]
	if l.prev == nil {
		q.head = l.next
	} else {
		l.prev.links[q.by].next = l.next
	}
	if l.next == nil {
		q.tail = l.prev
	} else {
		l.next.links[q.by].prev = l.prev
	}
	s.links[q.by] = link{}
}

// quiet returns the first slot whose client has sent nothing that is unread. It looks at
// few and returns nil if there is none among them.
func (q *queue) quiet() *Slot {
	s := q.head
	for n := 0; s != nil && n < evictionSample; n++ {
		if !s.owner.Unread() {
			return s
		}
		s = s.links[q.by].next
	}
	return nil
}
