"""Who may read which rows and columns of a source: declared in a document, enforced by rewriting statements.

`document` reads what is declared, `bound` is that for one user, `restricted` is what this user sees of a schema, and
`rewriting` makes of a statement one that reads no more than that.
"""
