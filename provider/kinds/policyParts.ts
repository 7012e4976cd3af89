/** Returns the end of an object as a policy contains it. Policies are compared, so each time has only one form. */
export const endOf = ({
  expiresAt,
}: {
  readonly expiresAt?: string | undefined;
}): { readonly expiresAt?: string } => (expiresAt ? { expiresAt: new Date(expiresAt).toISOString() } : {});
