; A schedule, run from the start to the end, and its goal (the model, section 5, second table).
;
; A buffer's length is known from the steps alone, so that lengths are part of the text.
;   each buffer: <name>, <l>                 a device's buffer after a step (step 0: the start) and its length
;   each start: <name>, <l>, <i>, <chunk>, <own>   a piece at the start
;   each group: <g>, <l>, <was>              a group of a reduction: its number, its length, its first member's buffer
;   each addition: <g>, <i>, <next>, <l>, <was>    another member
;   each gather, each joining: <bits>        the same of an AllGather, and the bits that are together so far
;   each summed: <now>, <g>, <last>          who gets the sum; each scattered: who gets the bits <high> to <low> of it
;   each emptied: <now>, <l>                 who is left with nothing defined
;   each gathered: <now>, <g>, <last>        who gets what was gathered
;   each copied: <now>, <was>                who has what some buffer was
;   each place: <p>, <chunk>                 a place in the order of the chunks, and the chunk that is there
;   each range: <p>, <first>, <end>          a place, and the first and last of the chunks that may be there
;   each pair: <p>, <q>                      two places
;   each goal: <f>                           a group of the goal
;   each part: <f>, <i>, <next>, <first>, <end>, <from>    chunks that are wanted from these contributors there
;   each wanted: <name>, <l>, <i>, <p>, <f>, <parts>       a piece, its place in the order of the chunks, its goal group
(declare-const <name> Buffer.<l>)                                                             ; each buffer

; At the start a device holds its chunks with its own contribution, once.
(assert (= (at.<l>.<i> <name>) (piece <chunk> <own> nobody)))                                 ; each start

; AllReduce, ReduceScatter and Reduce add the members' buffers.
(define-fun sum.<g>.0 () Buffer.<l> <was>)                                                    ; each group
(define-fun sum.<g>.<next> () Buffer.<l> (plus.<l> sum.<g>.<i> <was>))                        ; each addition

; AllReduce gives the sum to everyone, Reduce to the root.
(assert (= <now> sum.<g>.<last>))                                                             ; each summed

; ReduceScatter gives the j-th member the j-th part of the sum.
(assert (= <now> ((_ extract <high> <low>) sum.<g>.<last>)))                                  ; each scattered

; Reduce leaves the others undefined.
(assert (= <now> undefined.<l>))                                                              ; each emptied

; AllGather gives everyone the members' buffers one after the other.
(define-fun union.<g>.0 () (_ BitVec <bits>) <was>)                                           ; each gather
(define-fun union.<g>.<next> () (_ BitVec <bits>) (concat <was> union.<g>.<i>))               ; each joining
(assert (= <now> union.<g>.<last>))                                                           ; each gathered

; Broadcast overwrites everyone with the root's buffer; devices in no group keep theirs.
(assert (= <now> <was>))                                                                      ; each copied

; The order in which the chunks lie at the end: that of a first buffer, or chunk order where that is wanted.
(define-fun order.<p> () Chunk <chunk>)                                                       ; each place

; The goal: every chunk has one place, in the range where it is to be, and every piece is right for the chunk of its
; place.
(define-fun from.<f>.0 ((c Chunk)) Contributors nobody)                                       ; each goal
(define-fun is.<f>.<next> ((c Chunk)) Bool (and (bvule <first> c) (bvule c <end>)))            ; each part
(define-fun from.<f>.<next> ((c Chunk)) Contributors (ite (is.<f>.<next> c) <from> (from.<f>.<i> c))) ; each part
(define-fun goal () Bool (and true true
  (and (bvule <first> order.<p>) (bvule order.<p> <end>))                                     ; each range [goal.range]
  (not (= order.<p> order.<q>))                                                              ; each pair [goal.distinct]
  (right (at.<l>.<i> <name>) order.<p> (from.<f>.<parts> order.<p>))                          ; each wanted [goal.right]
))
(assert (not goal))
