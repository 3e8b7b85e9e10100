import { useLayoutEffect, useState } from 'preact/hooks'

/** Where the console is: the parts of the address after `#/`. No text and no key is ever put there. */
const hereIs = (): string[] =>
  location.hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter(part => part !== '')

export const go = (...parts: string[]): void => {
  location.hash = addressOf(...parts)
}

export const addressOf = (...parts: string[]): string => `#/${parts.join('/')}`

/** The same as state: the view follows the address. */
export function useAddress(): string[] {
  const [parts, setParts] = useState(hereIs)
  // At once: an address that changes before anybody listens would be missed.
  useLayoutEffect(() => {
    const follow = (): void => setParts(hereIs())
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  return parts
}
