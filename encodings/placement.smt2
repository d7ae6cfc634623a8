; A placement: a matrix of positive whole numbers, a row per axis and a column per level, whose row products are the
; axis sizes and whose column products are the level sizes (the model, section 2).
;   <axes>, <levels>     how many axes and levels there are
;   <width>              bits enough for a product of as many numbers as a row or column has, each at most <most>
;   <one>, <most>        the number 1, and the largest of the sizes
;   each entry: <r>, <c>, <below>, <right>   row and column, row + 1 and column + 1
;   each axis: <r>, <size>, each level: <c>, <size>   rows and columns with their sizes
; Sizes and their products.
(define-sort Size () (_ BitVec <width>))

; The entry of row r and column c, the product of the entries left of it in its row, and of those above it in its
; column.
(declare-const x<r>.<c> Size)                                                                 ; each entry
(define-fun left<r>.0 () Size <one>)                                                          ; each axis
(define-fun above0.<c> () Size <one>)                                                         ; each level
(define-fun left<r>.<right> () Size (bvmul left<r>.<c> x<r>.<c>))                             ; each entry
(define-fun above<below>.<c> () Size (bvmul above<r>.<c> x<r>.<c>))                           ; each entry

; No entry is more than the largest size, so that no product overflows; the whole product of each row and column is its
; size. (So no entry is zero: its products would be.)
(define-fun placement () Bool (and
  (bvule x<r>.<c> <most>)                                                                 ; each entry [placement.entry]
  (= left<r>.<levels> <size>)                                                               ; each axis [placement.rows]
  (= above<axes>.<c> <size>)                                                            ; each level [placement.columns]
))
(assert placement)
