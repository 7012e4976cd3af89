/** An object that was there before, and that a resource took over. */
export interface Adopted {
  /** The resource's class. */
  readonly type: string;
  /** The resource's name in the program. */
  readonly name: string;
  /** The object's id. */
  readonly id: string;
}

/**
 * The message that a provider prints of it. Our engines show it, and count the object as adopted instead of created.
 */
export function adoptionNotice({ type, name, id }: Adopted): string {
  return `${type} "${name}": took over ${id}, which was there already`;
}

/** What a message says that {@link adoptionNotice} made; undefined for any other message. */
export function readAdoptionNotice(message: string): Adopted | undefined {
  const [, type, name, id] = /^(\w+) "(.*)": took over (.+), which was there already$/.exec(message) ?? [];
  return type !== undefined && name !== undefined && id !== undefined ? { type, name, id } : undefined;
}
