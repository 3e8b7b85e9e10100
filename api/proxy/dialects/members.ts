import { contractDocument, shapeOf } from '#api/contract/document.ts'
import type { MemorySwitches, PlainSwitches } from '#api/contract/generated/types.ts'
import {
  readMessages,
  type RequestMessage,
  type RequestSource,
} from '#api/proxy/dialects/messages.ts'
import type { RequestFormat } from '#api/proxy/dialects/request-format.ts'
import { MemberRemovals, type Removals } from '#api/proxy/json/splice.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Steps } from '#shared/core/event-loop.ts'
import {
  createNameMatcher,
  firstElement,
  forEachMember,
  kindAt,
  memberAt,
  nextElement,
  parseValue,
  valueEnd,
  type NameMatcher,
} from '#shared/core/json-walk.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'
import type { Schema } from '#shared/core/shape.ts'

type Switches = MemorySwitches & PlainSwitches & { embeddings?: string }

/** The memory switches of a request body, without those that are null. */
export type BodySwitches = {
  [Name in keyof Switches as string extends Name ? never : Name]?: NonNullable<Switches[Name]>
}

const propertiesOf = (definition: string): Record<string, Schema> =>
  contractDocument.$defs[definition]!.properties as Record<string, Schema>
const tables = ['MemorySwitches', 'PlainSwitches']
const allSwitches = tables.flatMap(table => Object.keys(propertiesOf(table)))
const shapes = tables.map(table => shapeOf<Switches>(table, 'body'))
const checkTypes = (values: unknown): Switches =>
  shapes.reduce((checked, shape) => shape.check(checked), values) as Switches

/** Offsets of a value in a body. */
export type ByteSpan = { at: number; end: number }

/** The members of a request body that are read, without its switches. */
export type RequestMembers = {
  /** The last of several members with the same name counts, as in every provider's parser. */
  spans: ReadonlyMap<string, ByteSpan>
  messages: readonly RequestMessage[]
  switches: BodySwitches
  /**
   * The members that the contract's shape of a body constrains, so that the whole body need not be parsed once more to
   * be checked: shapes leave the elements of lists open, and the members of objects where no `$ref` types them.
   */
  typedFields: Record<string, unknown>
  /** The switches of the body and of its messages. */
  removals: Removals
}

/** Members that are read in every format, in addition to those that its shape constrains. */
const readNames = [
  'model',
  'cache_control',
  'system',
  'systemInstruction',
  'system_instruction',
  'instructions',
  'previous_response_id',
  'conversation',
]

const tokenLimits = ['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'maxOutputTokens']
const generationConfigs = ['generationConfig', 'generation_config']
const matchTokenLimit = createNameMatcher(tokenLimits)

/** The properties that a format's shape constrains, which of them are switches, and what finds all members that are read. */
export type MemberNames = {
  properties: Record<string, Schema>
  switches: ReadonlySet<string>
  match: NameMatcher<string>
}

export function memberNames({ bodyShape, messages }: RequestFormat): MemberNames {
  const properties = propertiesOf(String(bodyShape.schema.$ref).split('/').at(-1)!)
  const read = [...readNames, ...tokenLimits, ...generationConfigs, ...(messages ? [messages] : [])]
  // What is a switch elsewhere may be the provider's here.
  const switches = new Set([...allSwitches.filter(name => name in properties), 'embeddings'])
  const all = new Set([...switches, ...Object.keys(properties), ...read])
  return { properties, switches, match: createNameMatcher([...all]) }
}

/**
 * Reads the members of the object at `start`, each removed or retained in order, and the messages of its conversation.
 *
 * @throws Refusal `invalid` for a switch of a wrong type, and for a user that is null.
 */
export function* readMembers(
  source: RequestSource,
  start: number,
  { properties, switches: switchNames, match }: MemberNames,
): Steps<RequestMembers> {
  const { body, format } = source
  const spans = new Map<string, ByteSpan>()
  const removals: Removals = []
  const cuts = new MemberRemovals(removals)
  const switches: Record<string, unknown> = {}
  let messages: RequestMessage[] = []
  let name = firstElement(body, start)
  for (let member = memberAt(body, name); member; member = memberAt(body, name)) {
    const { nameEnd, valueAt: at } = member
    const field = match(body, name, nameEnd)
    let end: number
    if (field !== undefined && switchNames.has(field) && isSwitch(body, field, at, format)) {
      end = valueEnd(body, at)
      cuts.remove(name, end)
      switches[field] = readTypedValue(body, { at, end })
    } else {
      const conversation =
        field !== undefined && field === format.messages
          ? yield* readMessages(source, at)
          : undefined
      end = conversation?.end ?? valueEnd(body, at)
      cuts.retain(name, end)
      if (conversation) ({ messages } = conversation)
      for (const offset of conversation?.removals ?? []) removals.push(offset)
      if (field !== undefined) spans.set(field, { at, end })
    }
    name = nextElement(body, end)
  }
  cuts.finish()
  const typed = [...spans].filter(([name]) => Object.hasOwn(properties, name))
  const typedFields = Object.fromEntries(
    typed.map(([name, span]) => [name, readTypedValue(body, span, 'anyOf' in properties[name]!)]),
  )
  const checked = format.hasOddSwitches ? {} : checkSwitches(switches)
  return { spans, messages, removals, switches: checked, typedFields }
}

/** Whether a member is a switch of ours. Providers may have members of the same name and another type. */
function isSwitch(
  body: Buffer,
  name: string,
  at: number,
  { hasOddSwitches }: RequestFormat,
): boolean {
  if (name === 'embeddings' && kindAt(body, at) !== 'string') return false
  if (!hasOddSwitches) return true
  try {
    checkTypes({ [name]: readTypedValue(body, { at, end: valueEnd(body, at) }) })
    return true
  } catch {
    return false
  }
}

function checkSwitches(values: Record<string, unknown>): BodySwitches {
  // As for the header: the vault of the key must not stand in for that of a user.
  if (values.memory_user === null)
    throw new Refusal('invalid', 'memory_user is null', 'Name the user, or leave the field out')
  const given = Object.entries(checkTypes(values)).filter(([, value]) => value !== null)
  return Object.fromEntries(given)
}

/** A value as a check of its type needs it: lists are empty, and so are objects whose members are not checked. */
function readTypedValue(body: Buffer, { at, end }: ByteSpan, checksMembers = false): unknown {
  const kind = kindAt(body, at)
  if (kind === 'array') return []
  return kind === 'object' && !checksMembers ? {} : sanitizeJson(parseValue(body, at, end))
}

/** How many tokens the body allows the reply; undefined where it does not say. */
export function readMaxTokens(body: Buffer, { spans }: RequestMembers): number | undefined {
  let max: number | undefined
  const read = (at: number): void => {
    const limit =
      kindAt(body, at) === 'other' ? parseValue(body, at, valueEnd(body, at)) : undefined
    if (typeof limit === 'number') max = limit
  }
  for (const [name, { at }] of spans) {
    if (tokenLimits.includes(name)) read(at)
    else if (generationConfigs.includes(name) && kindAt(body, at) === 'object')
      forEachMember(body, at, (inner, innerEnd, value) => {
        if (matchTokenLimit(body, inner, innerEnd)) read(value)
        return undefined
      })
  }
  return max
}
