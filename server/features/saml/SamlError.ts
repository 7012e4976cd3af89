/**
 * The reason why a response of the identity provider is rejected. The reason is logged, but is not returned to the
 * sender.
 */
export class SamlError extends Error {
  override readonly name = "SamlError";
}
