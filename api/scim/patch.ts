import { ScimRefusal } from '#api/edge/errors.ts'
import { bareName } from '#api/scim/filter.ts'

/** One change of one attribute. */
export type Assignment = {
  op: 'add' | 'replace' | 'remove'
  /** Without its schema, in lower case; of `members[value eq "…"].display` it is `members.display`. */
  attribute: string
  /** What stands in the brackets of the path. */
  filter?: string | undefined
  value?: unknown
  /** The path named it; else it stands in a resource, or in the value of an operation without a path. */
  isNamed: boolean
}

/**
 * Reads a PATCH as Okta and Entra send it: operations in any case (`Add`), values without a path, there also under names
 * with dots (`name.givenName`).
 *
 * @throws ScimRefusal `invalidSyntax`, `invalidPath`, `invalidValue`, `noTarget`.
 */
export function readPatch(body: unknown): Assignment[] {
  const { schemas, Operations: operations } = Object(body) as Record<string, unknown>
  if (!/"urn:ietf:params:scim:api:messages:2.0:patchop"/i.test(JSON.stringify(schemas) ?? ''))
    throw new ScimRefusal('invalidSyntax', 'schemas does not name PatchOp')
  if (!Array.isArray(operations) || operations.length === 0 || operations.length > 1_000)
    throw new ScimRefusal('invalidSyntax', 'Operations has to be 1 to 1000 operations')
  return operations.flatMap(readOperation)
}

function readOperation(operation: unknown): Assignment[] {
  const { op: given, path, value } = Object(operation) as Record<string, unknown>
  const op = String(given).toLowerCase()
  if (op !== 'add' && op !== 'replace' && op !== 'remove')
    throw new ScimRefusal('invalidSyntax', 'op is neither add, replace nor remove')
  if (path === undefined || path === null || path === '') {
    if (op === 'remove') throw new ScimRefusal('noTarget', 'A remove needs a path')
    return assignmentsOf(value, op)
  }
  const text = typeof path === 'string' ? path.trim() : ''
  const match = /^([\w:.$-]+?)(?:\[([^\]]*)\])?(\.\w+)?$/.exec(text)
  if (!match) throw new ScimRefusal('invalidPath', 'path names no attribute')
  const [, name = '', filter, sub = ''] = match
  if (op !== 'remove' && value === undefined)
    throw new ScimRefusal('invalidValue', 'An operation has no value')
  return [{ op, attribute: bareName(name + sub), filter, value, isNamed: true }]
}

/** The attributes of a resource, or of the value of an operation without a path. @throws ScimRefusal `invalidSyntax`. */
export function assignmentsOf(
  resource: unknown,
  op: 'add' | 'replace' = 'replace',
  prefix = '',
): Assignment[] {
  if (typeof resource !== 'object' || resource === null || Array.isArray(resource))
    throw new ScimRefusal('invalidSyntax', 'This is not an object of attributes')
  return Object.entries(resource).map(([name, value]) => {
    return { op, attribute: prefix + bareName(name), value, isNamed: false }
  })
}

/** A line, or null where it is removed or empty. @throws ScimRefusal `invalidValue`. */
export function readText({ op, attribute, value }: Assignment, lengthMax = 320): string | null {
  if (op === 'remove' || value === null || value === undefined || value === '') return null
  if (typeof value === 'string' && value.length <= lengthMax && !/[\p{Cc}\p{Cs}]/u.test(value))
    return value
  const is = `has to be a line of at most ${lengthMax} characters`
  throw new ScimRefusal('invalidValue', `${attribute.slice(0, 64)} ${is}`)
}

/** Attributes that the service alone writes: ignored in a resource, refused as a path (RFC 7644, 3.5.2). */
const readOnly = /^(?:schemas|id|meta|groups)(?:\.|$)/

/** Attributes of RFC 7643, 4.1, and of extensions, that are taken and not kept. */
const notKept =
  /^(?:name\.(?:formatted|middlename|honorificprefix|honorificsuffix)|displayname|nickname|profileurl|title|usertype|preferredlanguage|locale|timezone|password|phonenumbers|ims|photos|addresses|entitlements|roles|x509certificates)(?:\.|$)|^urn:/

/** Lets pass what is not kept. @throws ScimRefusal for an attribute that no schema has, or that may not be written. */
export function requireIgnored({ attribute, isNamed }: Assignment): void {
  const shown = attribute.slice(0, 64)
  if (readOnly.test(attribute)) {
    if (isNamed) throw new ScimRefusal('mutability', `${shown} is written by the service alone`)
  } else if (!notKept.test(attribute))
    throw new ScimRefusal(isNamed ? 'invalidPath' : 'invalidSyntax', `unknown attribute ${shown}`)
}
