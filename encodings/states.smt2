; States: what a device holds (the model, section 5).
;
; A state is a Boolean matrix of <k> chunks (rows) and <k> contributors (columns), laid out as one bit-vector, chunk by
; chunk: bit chunk * <k> + contributor says that the chunk is held with that contribution in it.
;   <k>                 how many devices there are, and so how many chunks and contributors
;   <bits>              k * k
;   <width>             bits enough for any number from 0 to k * k
;   each chunk: <c>     its number; <next> is c + 1; <high> and <low> are the last and first bit of its row

; The sorts that follow, with nothing held, nobody's contribution, and the numbers 0 and 1.
(define-sort State () (_ BitVec <bits>))
(define-sort Contributors () (_ BitVec <k>))
(define-sort Number () (_ BitVec <width>))
(define-fun nothing () State (_ bv0 <bits>))
(define-fun nobody () Contributors (_ bv0 <k>))
(define-fun zero () Number (_ bv0 <width>))
(define-fun one () Number (_ bv1 <width>))

; The row of a chunk is the set of contributors in it, and a chunk is held where its row is not empty.
(define-fun row<c> ((s State)) Contributors ((_ extract <high> <low>) s))                                  ; each chunk
(define-fun holds<c> ((s State)) Bool (not (= (row<c> s) nobody)))                                         ; each chunk

; `before-c` is the number of chunks held among those before chunk c, and `count` that of all.
(define-fun before0 ((s State)) Number zero)
(define-fun before<next> ((s State)) Number (bvadd (before<c> s) (ite (holds<c> s) one zero)))             ; each chunk
(define-fun count ((s State)) Number (before<k> s))

; Two devices hold the same chunks, whoever contributed.
(define-fun equal-rows ((s State) (t State)) Bool (and
  (= (holds<c> s) (holds<c> t))                                                                            ; each chunk
))

; No chunk is held by both.
(define-fun disjoint-rows ((s State) (t State)) Bool (and
  (not (and (holds<c> s) (holds<c> t)))                                                                    ; each chunk
))

; Chunk by chunk, no contribution is in both.
(define-fun disjoint ((s State) (t State)) Bool (= (bvand s t) nothing))

; Everything that is in s is in t.
(define-fun within ((s State) (t State)) Bool (= (bvor s t) t))

; t is the j-th of m equal parts of s: of the n chunks held, in order, those numbered from j n / m to (j + 1) n / m.
(define-fun in-part ((earlier Number) (n Number) (j Number) (m Number)) Bool (and
  (bvule (bvmul j n) (bvmul earlier m))                                                        ; [part.from-its-start]
  (bvult (bvmul earlier m) (bvmul (bvadd j one) n))                                            ; [part.to-its-end]
))
(define-fun is-part ((t State) (s State) (j Number) (m Number)) Bool (and
  (= (row<c> t) (ite (in-part (before<c> s) (count s) j m) (row<c> s) nobody))                             ; each chunk
))
