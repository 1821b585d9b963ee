//! lockgate-server
