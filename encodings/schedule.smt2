; Buffers: what a schedule does to machines' memory (the model, section 5, "Buffers").
;
; A piece is a chunk number with a count per contributor, or undefined. A count is none, once, or more than once: that
; is all the goals ask, and adding never makes it less. A piece is one bit-vector: whether it is defined, its chunk, the
; contributors that are in it at all, and those that are in it more than once.
;   <n>, <width>               how many devices there are, and bits of a chunk number
;   <bits>, <last>             1 + width + 2 n, the bits of a piece, and the last of them
;   <chunk-high>, <chunk-low>, <some-high>, <some-low>, <more-high>   where its parts are
(define-sort Piece () (_ BitVec <bits>))
(define-sort Chunk () (_ BitVec <width>))
(define-sort Contributors () (_ BitVec <n>))
(define-fun nobody () Contributors (_ bv0 <n>))
(define-fun undefined () Piece (_ bv0 <bits>))
(define-fun defined ((p Piece)) Bool (= ((_ extract <last> <last>) p) #b1))
(define-fun chunk ((p Piece)) Chunk ((_ extract <chunk-high> <chunk-low>) p))
(define-fun some ((p Piece)) Contributors ((_ extract <some-high> <some-low>) p))
(define-fun more ((p Piece)) Contributors ((_ extract <more-high> 0) p))
(define-fun piece ((c Chunk) (in Contributors) (twice Contributors)) Piece (concat #b1 (concat c (concat in twice))))

; Two pieces may be added if both are defined and of the same chunk; adding others gives undefined.
(define-fun addable ((p Piece) (q Piece)) Bool (and
  (defined p)                                                                                 ; [schedule.defined]
  (defined q)                                                                                 ; [schedule.both-defined]
  (= (chunk p) (chunk q))                                                                     ; [schedule.same-chunk]
))

; Counts add up: who is in both is in the sum more than once.
(define-fun counted-twice ((p Piece) (q Piece)) Contributors
  (bvor (bvor (more p) (more q)) (bvand (some p) (some q))))
(define-fun add ((p Piece) (q Piece)) Piece
  (ite (addable p q) (piece (chunk p) (bvor (some p) (some q)) (counted-twice p q)) undefined))

; A piece is right for a chunk if it is that chunk and exactly these contributors are in it, each once. (They are at
; least one, so that the piece is defined.)
(define-fun right ((p Piece) (c Chunk) (from Contributors)) Bool (and
  (= (chunk p) c)                                                                             ; [right.chunk]
  (= (some p) from)                                                                           ; [right.contributors]
  (= (more p) nobody)                                                                         ; [right.once]
))
