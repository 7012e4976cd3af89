/** An object that was there before, and that a resource took over. */
export interface Adopted {
  /** The resource's class. */
  readonly type: string;
  /** The resource's name in the program. */
  readonly name: string;
  /** The object's id. */
  readonly id: string;
}

/** What a provider says of it. Our engines show it, and count the object as adopted instead of created. */
export const adoptionText = (id: string): string => `took over ${id}, which was there already`;

/** What a line says of an object that was taken over, as `type "name": ` and {@link adoptionText}; undefined for any other. */
export function readAdoptionNotice(message: string): Adopted | undefined {
  const [, type, name, id] = /^(\w+) "(.*)": took over (.+), which was there already$/.exec(message) ?? [];
  return type !== undefined && name !== undefined && id !== undefined ? { type, name, id } : undefined;
}
