import { useLayoutEffect, useState } from 'preact/hooks'

/** The current route: the segments after `#/`, without the fields that `useAddress` keeps. Never keys. */
const currentPath = (): string[] =>
  location.hash
    .replace(/^#\/?/, '')
    .split('?', 1)[0]!
    .split('/')
    .filter(part => part !== '')

export const navigate = (...parts: string[]): void => {
  location.hash = hrefTo(...parts)
}

export const hrefTo = (...parts: string[]): string => `#/${parts.join('/')}`

/** The current route as state. */
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
