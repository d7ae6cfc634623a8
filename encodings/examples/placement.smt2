; Is there a placement of axes 4 and 16 on levels 4 and 16?
(set-option :produce-models true)
(set-logic QF_BV)
; A placement: a matrix of positive whole numbers, a row per axis and a column per level, whose row products are the
; axis sizes and whose column products are the level sizes (the model, section 2).
; Sizes and their products.
(define-sort Size () (_ BitVec 10))

; The entry of row r and column c, the product of the entries left of it in its row, and of those above it in its
; column.
(declare-const x0.0 Size)
(declare-const x0.1 Size)
(declare-const x1.0 Size)
(declare-const x1.1 Size)
(define-fun left0.0 () Size #b0000000001)
(define-fun left1.0 () Size #b0000000001)
(define-fun above0.0 () Size #b0000000001)
(define-fun above0.1 () Size #b0000000001)
(define-fun left0.1 () Size (bvmul left0.0 x0.0))
(define-fun left0.2 () Size (bvmul left0.1 x0.1))
(define-fun left1.1 () Size (bvmul left1.0 x1.0))
(define-fun left1.2 () Size (bvmul left1.1 x1.1))
(define-fun above1.0 () Size (bvmul above0.0 x0.0))
(define-fun above1.1 () Size (bvmul above0.1 x0.1))
(define-fun above2.0 () Size (bvmul above1.0 x1.0))
(define-fun above2.1 () Size (bvmul above1.1 x1.1))

; No entry is more than the largest size, so that no product overflows; the whole product of each row and column is its
; size. (So no entry is zero: its products would be.)
(define-fun placement () Bool (and
  (bvule x0.0 #b0000010000)  ; [placement.entry]
  (bvule x0.1 #b0000010000)  ; [placement.entry]
  (bvule x1.0 #b0000010000)  ; [placement.entry]
  (bvule x1.1 #b0000010000)  ; [placement.entry]
  (= left0.2 #b0000000100)  ; [placement.rows]
  (= left1.2 #b0000010000)  ; [placement.rows]
  (= above2.0 #b0000000100)  ; [placement.columns]
  (= above2.1 #b0000010000)  ; [placement.columns]
))
(assert placement)
(set-info :status sat)
(check-sat)
