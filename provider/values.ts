/** Values by their name, such as the inputs and outputs of a resource. No code has checked their types yet. */
export type Values = Readonly<Record<string, unknown>>;
