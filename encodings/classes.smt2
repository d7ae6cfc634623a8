; Class states: what the devices hold whose digits are zero in the same factors. They behave alike, so that one state
; per class stands for all of them, whatever the factors' sizes.
;
; Along each of the <depth> factors such a device holds its own rows or all rows, with its own contributors or all.
;   <depth>   how many factors there are; factor f, 0 outermost, is bit f of a set of factors
;   <bits>    2 * depth + 1: whether anything is held, the factors with all rows, the factors with all contributors
;   <last>, <middle>, <high>   the last bit, and the first and last bit of the rows

; The sorts that follow, what a class state says, and sets of factors that are within another or have nothing in common.
(define-sort Factors () (_ BitVec <depth>))
(define-sort Class () (_ BitVec <bits>))
(define-fun none () Factors (_ bv0 <depth>))
(define-fun every () Factors (bvnot none))
(define-fun empty () Class (_ bv0 <bits>))
(define-fun held ((a Class)) Bool (= ((_ extract <last> <last>) a) #b1))
(define-fun all-rows ((a Class)) Factors ((_ extract <high> <depth>) a))
(define-fun all-from ((a Class)) Factors ((_ extract <middle> 0) a))
(define-fun class ((rows Factors) (from Factors)) Class (concat #b1 (concat rows from)))
(define-fun subset ((x Factors) (y Factors)) Bool (= (bvor x y) y))
(define-fun apart ((x Factors) (y Factors)) Bool (= (bvand x y) none))

; Where nothing is held there are no rows and no contributors to speak of.
(define-fun proper ((a Class)) Bool (or (held a) (= a empty)))
