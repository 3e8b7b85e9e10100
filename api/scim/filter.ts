import { ScimRefusal } from '#api/edge/errors.ts'

/** `emails[type eq "work"].value` is asked as `emails.value`: one email is kept. */
const comparison =
  /^\s*([\w:.$-]+?)(?:\[[^\]]*\])?(\.\w+)?\s+eq\s+("(?:[^"\\]|\\.)*"|true|false)\s*(?:$|and\s+)/i

/**
 * Reads a filter: `eq`, joined by `and`. Identity providers ask no other.
 *
 * @returns each attribute, without its schema and in lower case, and the value that it has to have
 * @throws ScimRefusal `invalidFilter`.
 */
export function parseFilter(filter: string): [attribute: string, value: string][] {
  const found: [string, string][] = []
  for (let rest = filter; rest !== '' || found.length === 0;) {
    const [whole, name = '', sub = '', value = ''] = comparison.exec(rest) ?? ['']
    if (whole === '')
      throw new ScimRefusal('invalidFilter', 'This filter is not served', 'Use eq, joined by and')
    found.push([bareName(name + sub), value.replace(/^"|"$/g, '').replaceAll(/\\(.)/g, '$1')])
    rest = rest.slice(whole.length)
  }
  return found
}

/** The name of an attribute without its schema, in lower case. */
export const bareName = (name: string): string =>
  name.replace(/^urn:ietf:params:scim:schemas:core:2\.0:(?:user|group):/i, '').toLowerCase()
