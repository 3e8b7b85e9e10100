import { useEffect, useState } from 'preact/hooks'

export type Address<Fields> = {
  fields: Fields
  /** Writes fields into the address; a step of its own for the browser's Back unless `replace`. */
  setFields: (fields: Fields, options?: { replace?: boolean }) => void
  /** Rises when the browser changed the address: by Back, Forward or a link. */
  visits: number
}

/**
 * Fields of a page that its address keeps: `#/search?query=cat&limit=10`. What follows the `#` is never sent to
 * a server. A field that has its default is left out.
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
      // On the way to another page.
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

const pathOf = (hash: string): string => hash.split('?', 1)[0]!

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
