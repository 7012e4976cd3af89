/** Connection announcement of a new namespace on a community instance, and of the first one (rules section 5.3). */
export const WELCOME =
  "Welcome! You are connected through Gatehouse. An administrator of the namespace can change this text.";
