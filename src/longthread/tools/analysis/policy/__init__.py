"""Row and column policies of a source, declared in a document and enforced by rewriting statements.

`document` reads the policies, `user_policy` is what holds for one user, `restricted_schema` is what this user sees of a
schema, `descriptions` withholds its texts that tell more, and `rewrite` rewrites statements to read no more than that.
"""
