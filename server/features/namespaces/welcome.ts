/**
 * Connection announcement of new namespaces on a community instance, and of the first namespace on every instance
 * (rules section 5.3).
 */
export const WELCOME =
  "Welcome! You are connected through Gatehouse. An administrator of the namespace can change this text.";
