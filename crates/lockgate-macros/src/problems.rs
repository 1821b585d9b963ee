//! Several errors, reported together, so that one compilation shows them all.

/// The errors so far.
#[derive(Default)]
pub(crate) struct Problems(Option<syn::Error>);

impl Problems {
    pub(crate) fn add(&mut self, problem: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(problem),
            none => *none = Some(problem),
        }
    }

    /// The value, if there is one; otherwise its error is noted.
    pub(crate) fn value_of<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|problem| self.add(problem)).ok()
    }

    /// All errors as one, or `Ok` when there was none.
    pub(crate) fn into_result(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Both values, or the errors of both.
pub(crate) fn both<A, B>(first: syn::Result<A>, second: syn::Result<B>) -> syn::Result<(A, B)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(mut problem), Err(another)) => {
            problem.combine(another);
            Err(problem)
        }
        (Err(problem), Ok(_)) | (Ok(_), Err(problem)) => Err(problem),
    }
}
