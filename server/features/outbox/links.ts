import type { Services } from "../../services.ts";

/**
 * A link for a mail. It leads to the public address from the settings alone: whoever can choose where it leads gets the
 * token in it.
 * @throws Error there is no such setting, which a cloud instance must have
 */
export function mailedLink(
  { settings }: Services,
  path: string,
  parameters: Readonly<Record<string, string>>,
): string {
  if (settings.publicUrl === undefined) throw new Error("GATEHOUSE_PUBLIC_URL is not set: a mail needs it");
  return linkAt(settings.publicUrl, path, parameters);
}

/** The same for a mail that every edition sends: where the public address is not known, the page's path alone. */
export function pageLink(
  services: Services,
  path: string,
  parameters: Readonly<Record<string, string>>,
): string {
  if (services.settings.publicUrl !== undefined) return mailedLink(services, path, parameters);
  return `${path}?${new URLSearchParams(parameters)}`;
}

/** A link to a page of the service at the origin. */
export function linkAt(origin: string, path: string, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(path, origin);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}
