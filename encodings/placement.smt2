; A placement: a matrix of positive whole numbers, a row per axis and a column per level, whose row products are the axis
; sizes and whose column products are the level sizes (the model, section 2).
;   <axes>, <levels>     how many axes and levels there are
;   <width>, <one>       bits of a number, twice what the largest size needs; the number 1
;   each entry: <r>, <c>, <below>, <right>   row and column, row + 1 and column + 1
;     <axis>, <level>    the sizes of its row's axis and its column's level
;   each axis: <r>, <size>, each level: <c>, <size>   rows and columns with their sizes
(define-sort Size () (_ BitVec <width>))

; The entry of row r and column c, the product of the entries left of it in its row, and of those above it in its column.
(declare-const x<r>.<c> Size)                                                                 ; each entry
(define-fun left<r>.0 () Size <one>)                                                          ; each axis
(define-fun above0.<c> () Size <one>)                                                         ; each level
(define-fun left<r>.<right> () Size (bvmul left<r>.<c> x<r>.<c>))                             ; each entry
(define-fun above<below>.<c> () Size (bvmul above<r>.<c> x<r>.<c>))                           ; each entry

; The whole product of each row and column is its size. No entry and no product on the way is more, so that none
; overflows; and no entry is zero, or the product would be.
(define-fun placement () Bool (and
  (bvule x<r>.<c> <axis>)                                                                     ; each entry [placement.entry]
  (bvule left<r>.<right> <axis>)                                                              ; each entry [placement.on-row]
  (bvule above<below>.<c> <level>)                                                            ; each entry [placement.on-column]
  (= left<r>.<levels> <size>)                                                                 ; each axis [placement.rows]
  (= above<axes>.<c> <size>)                                                                  ; each level [placement.columns]
))
(assert placement)
