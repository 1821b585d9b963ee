//! lockgate-lab
