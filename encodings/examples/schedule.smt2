; Does ReduceScatter in pairs, AllReduce across them and AllGather in them miss the AllReduce of 4 devices?
(set-option :produce-models true)
(set-logic QF_BV)
; Buffers: what a schedule does to machines' memory (the model, section 5, "Buffers").
;
; A piece is a chunk number with a count per contributor, or undefined. A count is none, once, or more than once: that
; is all the goals ask, and adding never makes it less. A piece is one bit-vector: whether it is defined, its chunk, the
; contributors that are in it at all, and those that are in it more than once.
(define-sort Piece () (_ BitVec 10))
(define-sort Chunk () (_ BitVec 1))
(define-sort Contributors () (_ BitVec 4))
(define-fun nobody () Contributors (_ bv0 4))
(define-fun undefined () Piece (_ bv0 10))
(define-fun defined ((p Piece)) Bool (= ((_ extract 9 9) p) #b1))
(define-fun chunk ((p Piece)) Chunk ((_ extract 8 8) p))
(define-fun some ((p Piece)) Contributors ((_ extract 7 4) p))
(define-fun more ((p Piece)) Contributors ((_ extract 3 0) p))
(define-fun piece ((c Chunk) (in Contributors) (twice Contributors)) Piece (concat #b1 (concat c (concat in twice))))

; Two pieces may be added if both are defined and of the same chunk; adding others gives undefined.
(define-fun addable ((p Piece) (q Piece)) Bool (and
  (defined p)  ; [schedule.defined]
  (defined q)  ; [schedule.both-defined]
  (= (chunk p) (chunk q))  ; [schedule.same-chunk]
))

; Counts add up: who is in both is in the sum more than once.
(define-fun counted-twice ((p Piece) (q Piece)) Contributors
  (bvor (bvor (more p) (more q)) (bvand (some p) (some q))))
(define-fun add ((p Piece) (q Piece)) Piece
  (ite (addable p q) (piece (chunk p) (bvor (some p) (some q)) (counted-twice p q)) undefined))

; A piece is right for a chunk if it is that chunk and exactly these contributors are in it, each once. (They are at
; least one, so that the piece is defined.)
(define-fun right ((p Piece) (c Chunk) (from Contributors)) Bool (and
  (= (chunk p) c)  ; [right.chunk]
  (= (some p) from)  ; [right.contributors]
  (= (more p) nobody)  ; [right.once]
))
; Buffers of 1 pieces; piece 0 is in the lowest bits.
(define-sort Buffer.1 () (_ BitVec 10))
(define-fun at.1.0 ((s Buffer.1)) Piece ((_ extract 9 0) s))
(define-fun undefined.1 () Buffer.1 (_ bv0 10))

; Two buffers are added position by position.
(define-fun plus.1 ((s Buffer.1) (t Buffer.1)) Buffer.1
  (add (at.1.0 s) (at.1.0 t))
)
; Buffers of 2 pieces; piece 0 is in the lowest bits.
(define-sort Buffer.2 () (_ BitVec 20))
(define-fun at.2.0 ((s Buffer.2)) Piece ((_ extract 9 0) s))
(define-fun at.2.1 ((s Buffer.2)) Piece ((_ extract 19 10) s))
(define-fun undefined.2 () Buffer.2 (_ bv0 20))

; Two buffers are added position by position.
(define-fun plus.2 ((s Buffer.2) (t Buffer.2)) Buffer.2
  (concat (add (at.2.1 s) (at.2.1 t))
  (add (at.2.0 s) (at.2.0 t))
  )
)
; A schedule, run from the start to the end, and its goal (the model, section 5, second table).
;
; A buffer's length is known from the steps alone, so that lengths are part of the text.
(declare-const b0.0 Buffer.2)
(declare-const b0.1 Buffer.2)
(declare-const b0.2 Buffer.2)
(declare-const b0.3 Buffer.2)
(declare-const b1.0 Buffer.1)
(declare-const b1.1 Buffer.1)
(declare-const b1.2 Buffer.1)
(declare-const b1.3 Buffer.1)
(declare-const b2.0 Buffer.1)
(declare-const b2.2 Buffer.1)
(declare-const b2.1 Buffer.1)
(declare-const b2.3 Buffer.1)
(declare-const b3.0 Buffer.2)
(declare-const b3.1 Buffer.2)
(declare-const b3.2 Buffer.2)
(declare-const b3.3 Buffer.2)

; At the start a device holds its chunks with its own contribution, once.
(assert (= (at.2.0 b0.0) (piece #b0 #b0001 nobody)))
(assert (= (at.2.1 b0.0) (piece #b1 #b0001 nobody)))
(assert (= (at.2.0 b0.1) (piece #b0 #b0010 nobody)))
(assert (= (at.2.1 b0.1) (piece #b1 #b0010 nobody)))
(assert (= (at.2.0 b0.2) (piece #b0 #b0100 nobody)))
(assert (= (at.2.1 b0.2) (piece #b1 #b0100 nobody)))
(assert (= (at.2.0 b0.3) (piece #b0 #b1000 nobody)))
(assert (= (at.2.1 b0.3) (piece #b1 #b1000 nobody)))

; AllReduce, ReduceScatter and Reduce add the members' buffers.
(define-fun sum.0.0 () Buffer.2 b0.0)
(define-fun sum.1.0 () Buffer.2 b0.2)
(define-fun sum.2.0 () Buffer.1 b1.0)
(define-fun sum.3.0 () Buffer.1 b1.1)
(define-fun sum.0.1 () Buffer.2 (plus.2 sum.0.0 b0.1))
(define-fun sum.1.1 () Buffer.2 (plus.2 sum.1.0 b0.3))
(define-fun sum.2.1 () Buffer.1 (plus.1 sum.2.0 b1.2))
(define-fun sum.3.1 () Buffer.1 (plus.1 sum.3.0 b1.3))

; AllReduce gives the sum to everyone, Reduce to the root.
(assert (= b2.0 sum.2.1))
(assert (= b2.2 sum.2.1))
(assert (= b2.1 sum.3.1))
(assert (= b2.3 sum.3.1))

; ReduceScatter gives the j-th member the j-th part of the sum.
(assert (= b1.0 ((_ extract 9 0) sum.0.1)))
(assert (= b1.1 ((_ extract 19 10) sum.0.1)))
(assert (= b1.2 ((_ extract 9 0) sum.1.1)))
(assert (= b1.3 ((_ extract 19 10) sum.1.1)))

; Reduce leaves the others undefined.

; AllGather gives everyone the members' buffers one after the other.
(define-fun union.4.0 () (_ BitVec 10) b2.0)
(define-fun union.5.0 () (_ BitVec 10) b2.2)
(define-fun union.4.1 () (_ BitVec 20) (concat b2.1 union.4.0))
(define-fun union.5.1 () (_ BitVec 20) (concat b2.3 union.5.0))
(assert (= b3.0 union.4.1))
(assert (= b3.1 union.4.1))
(assert (= b3.2 union.5.1))
(assert (= b3.3 union.5.1))

; Broadcast overwrites everyone with the root's buffer; devices in no group keep theirs.

; The order in which the chunks lie at the end: that of a first buffer, or chunk order where that is wanted.
(define-fun order.0 () Chunk (chunk (at.2.0 b3.0)))
(define-fun order.1 () Chunk (chunk (at.2.1 b3.0)))

; The goal: every chunk has one place, in the range where it is to be, and every piece is right for the chunk of its
; place.
(define-fun from.0.0 ((c Chunk)) Contributors nobody)
(define-fun is.0.1 ((c Chunk)) Bool (and (bvule #b0 c) (bvule c #b1)))
(define-fun from.0.1 ((c Chunk)) Contributors (ite (is.0.1 c) #b1111 (from.0.0 c)))
(define-fun goal () Bool (and true true
  (and (bvule #b0 order.0) (bvule order.0 #b1))  ; [goal.range]
  (and (bvule #b0 order.1) (bvule order.1 #b1))  ; [goal.range]
  (not (= order.0 order.1))  ; [goal.distinct]
  (right (at.2.0 b3.0) order.0 (from.0.1 order.0))  ; [goal.right]
  (right (at.2.1 b3.0) order.1 (from.0.1 order.1))  ; [goal.right]
  (right (at.2.0 b3.1) order.0 (from.0.1 order.0))  ; [goal.right]
  (right (at.2.1 b3.1) order.1 (from.0.1 order.1))  ; [goal.right]
  (right (at.2.0 b3.2) order.0 (from.0.1 order.0))  ; [goal.right]
  (right (at.2.1 b3.2) order.1 (from.0.1 order.1))  ; [goal.right]
  (right (at.2.0 b3.3) order.0 (from.0.1 order.0))  ; [goal.right]
  (right (at.2.1 b3.3) order.1 (from.0.1 order.1))  ; [goal.right]
))
(assert (not goal))
(set-info :status unsat)
(check-sat)
