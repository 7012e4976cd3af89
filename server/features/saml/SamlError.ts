/**
 * The error for a response of the identity provider that the service rejects. The message contains the reason. The
 * reason is logged, but is not returned to the sender.
 */
export class SamlError extends Error {
  override readonly name = "SamlError";
}
