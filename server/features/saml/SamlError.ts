/** The reason for rejecting a response of the identity provider. It is logged, but the sender does not receive it. */
export class SamlError extends Error {
  override readonly name = "SamlError";
}
