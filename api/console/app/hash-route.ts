import { useLayoutEffect, useState } from 'preact/hooks'

/** Where the console is: the parts of the address after `#/`. No text and no key is ever put there. */
const currentPath = (): string[] =>
  location.hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter(part => part !== '')

export const navigate = (...parts: string[]): void => {
  location.hash = hrefTo(...parts)
}

export const hrefTo = (...parts: string[]): string => `#/${parts.join('/')}`

/** The same as state: the view follows the address. */
export function useHashPath(): string[] {
  const [parts, setParts] = useState(currentPath)
  // At once: an address that changes before anybody listens would be missed.
  useLayoutEffect(() => {
    const update = (): void => setParts(currentPath())
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [])
  return parts
}
