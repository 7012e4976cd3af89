/** Why a response of the identity provider is refused; for the log, not for the sender of the response. */
export class SamlError extends Error {
  override readonly name = "SamlError";
}
