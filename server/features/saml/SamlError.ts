/** Why a response of the identity provider is refused: for the log, not for its sender. */
export class SamlError extends Error {
  override readonly name = "SamlError";
}
