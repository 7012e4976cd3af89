import type { Services } from "../../services.ts";

/**
 * Returns a link for a mail. The origin of the link comes only from the settings: an attacker who could choose the
 * origin would receive the token in the link.
 * @throws Error the public URL is not set
 */
export function mailedLink(
  { settings }: Pick<Services, "settings">,
  path: string,
  parameters: Readonly<Record<string, string>>,
): string {
  if (settings.publicUrl === undefined)
    throw new Error("cannot create a link in a mail: GATEHOUSE_PUBLIC_URL is not set");
  return linkAt(settings.publicUrl, path, parameters);
}

/**
 * Returns a link for a mail that every edition sends. Returns only the path of the page if the public URL is not set.
 */
export function pageLink(
  services: Pick<Services, "settings">,
  path: string,
  parameters: Readonly<Record<string, string>>,
): string {
  if (services.settings.publicUrl !== undefined) return mailedLink(services, path, parameters);
  return `${path}?${new URLSearchParams(parameters)}`;
}

/** Returns a link to a page of the service, with the given origin. */
export function linkAt(origin: string, path: string, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(path, origin);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}
