import { useEffect, useLayoutEffect, useState } from 'preact/hooks'

const pathOf = (hash: string): string => hash.split('?', 1)[0]!

/** The segments after `#/`, without the fields that `useAddress` keeps. Keys never stand in an address. */
export const currentPath = (): string[] =>
  pathOf(location.hash)
    .replace(/^#\/?/, '')
    .split('/')
    .filter(part => part !== '')

export const hrefTo = (...parts: string[]): string => `#/${parts.join('/')}`

/** The address of a user's page, or of a part of it. */
export const userHref = (user: string, ...parts: string[]): string =>
  hrefTo('people', encodeURIComponent(user), ...parts)

/** The address of a page, with those of its fields that `useAddress` keeps. */
export const hrefWith = (fields: Record<string, string>, ...parts: string[]): string =>
  `${hrefTo(...parts)}?${new URLSearchParams(fields).toString()}`

/** A segment of an address as text; one that is not well-formed stays as it is. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export const navigate = (...parts: string[]): void => {
  location.hash = hrefTo(...parts)
}

/** Goes on without a step in the browser's history. */
export function replaceAddress(...parts: string[]): void {
  history.replaceState(null, '', hrefTo(...parts))
  dispatchEvent(new HashChangeEvent('hashchange'))
}

export function useHashPath(): string[] {
  const [parts, setParts] = useState(currentPath)
  // In a layout effect: a change before the listener is added would be missed.
  useLayoutEffect(() => {
    const update = (): void => setParts(currentPath())
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [])
  return parts
}

export type Address<Fields> = {
  fields: Fields
  /** Writes fields into the address. Adds a step to the browser's history unless `replace`. */
  setFields: (fields: Fields, options?: { replace?: boolean }) => void
  /** Rises when the browser changed the address: by Back, Forward or a link. */
  visits: number
}

/**
 * Keeps fields of a page in its address: `#/search?query=cat&limit=10`. Browsers never send what follows the `#`.
 * The address leaves out a field that has its default.
 *
 * @param defaults the same object at every call
 */
export function useAddress<Fields extends Record<string, string>>(
  defaults: Fields,
): Address<Fields> {
  const [state, setState] = useState(() => ({ fields: readFields(defaults), visits: 0 }))
  useEffect(() => {
    const path = pathOf(location.hash)
    const update = (): void => {
      // The address of another page is not read.
      if (pathOf(location.hash) !== path) return
      setState(({ visits }) => ({ fields: readFields(defaults), visits: visits + 1 }))
    }
    addEventListener('popstate', update)
    return () => removeEventListener('popstate', update)
  }, [])
  return {
    ...state,
    setFields(fields, { replace = false } = {}) {
      const address = writeFields(fields, defaults)
      if (address === location.hash) return
      history[replace ? 'replaceState' : 'pushState'](null, '', address)
      setState(({ visits }) => ({ fields, visits }))
    },
  }
}

function readFields<Fields extends Record<string, string>>(defaults: Fields): Fields {
  const { hash } = location
  const stored = new URLSearchParams(hash.slice(pathOf(hash).length))
  const fields = Object.entries(defaults).map(([name, value]) => [name, stored.get(name) ?? value])
  return Object.fromEntries(fields) as Fields
}

function writeFields(fields: Record<string, string>, defaults: Record<string, string>): string {
  const kept = Object.entries(fields).filter(([name, value]) => value !== defaults[name])
  const query = new URLSearchParams(kept).toString()
  return `${pathOf(location.hash) || '#/'}${query && `?${query}`}`
}
