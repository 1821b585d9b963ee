//! lockgate-macros
