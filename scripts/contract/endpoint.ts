import type { Content, Credential, Endpoint, Reference, Right } from '#api/contract/document.ts'
import { fault, type Chapter, type Part } from '#scripts/contract/read.ts'
import type { Schema } from '#shared/core/shape.ts'

type Definitions = Record<string, Schema>

/**
 * One endpoint out of its chapter. What it picks from lists of parameters and headers becomes a
 * definition of its own, such as `SearchHeaders`, and is added to `$defs`.
 *
 * @throws Error naming what is missing or not understood.
 */
export function endpointOf(chapter: Chapter, $defs: Definitions): Endpoint {
  const { title, place, facts, paragraphs, parts } = chapter
  const match = /^(GET|POST|PUT|PATCH|DELETE) (\/\S*)$/.exec(title)
  if (!match) throw fault(place, 'is neither an endpoint nor a resource')
  const [, method, path] = match
  const operation = facts.get('Operation')
  if (!operation || !/^[a-z][A-Za-z]+$/.test(operation)) {
    throw fault(place, 'needs an Operation in camelCase')
  }
  const description = paragraphs.join('\n')
  if (!description) throw fault(place, 'says nothing about itself')
  if (chapter.rows.length > 0) throw fault(place, 'its tables stand under ### headings')
  if (facts.has('Is')) throw fault(place, 'Is belongs to resources')
  for (const part of parts) requireKnownWords(part, $defs)

  const { auth, needs } = readAuth(chapter)
  const takes = listOf(facts.get('Takes'))
  const sends = listOf(facts.get('Sends')).map(name => name.toLowerCase())
  requireKnown(chapter, $defs, 'AnswerHeaders', sends)
  const params = pick(chapter, $defs, 'Params', namesInPath(path!))
  const headers = pick(
    chapter,
    $defs,
    'Headers',
    takes.map(name => name.toLowerCase()),
  )
  const query = partOf(chapter, 'Query')
  const body = readBody(chapter, $defs)
  const answers = readAnswers(parts, operation)
  if (Object.keys(answers).length === 0) throw fault(place, 'has no answer')
  const idempotent = takes.includes('Idempotency-Key')
  return {
    operation,
    method: method!,
    path: path!,
    summary: description.split(/(?<=\.)\s/, 1)[0]!,
    description,
    auth,
    needs,
    ...(params && { params }),
    ...(query && { query: referenceOf(query, operation, 0) }),
    ...(headers && { headers }),
    ...(body && { body }),
    answers,
    sends,
    errors: errorsOf(chapter, {
      open: auth.length === 0,
      needs,
      body: body !== undefined,
      idempotent,
    }),
  }
}

function requireKnownWords({ place, words, type }: Part, $defs: Definitions): void {
  const strange = words.find(word => word !== 'open' && !/^[a-z]+\/[a-z0-9.+-]+$/.test(word))
  if (strange) throw fault(place, `(${strange}) is neither open nor a media type`)
  if (!isResourceName(type)) return
  if (!$defs[type]) throw fault(place, `unknown type ${type}`)
  if (words.includes('open')) throw fault(place, `whether ${type} is open, its own heading says`)
}

const credentials: Record<string, Credential[]> = {
  none: [],
  'Memory Key': ['memory-key'],
  admin: ['admin'],
  'Memory Key or admin': ['memory-key', 'admin'],
}

function readAuth({ place, facts }: Chapter): Pick<Endpoint, 'auth' | 'needs'> {
  const value = facts.get('Auth') ?? ''
  const [name = '', rights = ''] = value.split(', may ')
  const auth = credentials[name]
  const needs = rights === '' ? [] : rights.split(' and ')
  const known = needs.every(right => ['read', 'write', 'mint', 'govern'].includes(right))
  if (auth && known && (needs.length === 0 || auth.includes('memory-key'))) {
    return { auth, needs: needs as Right[] }
  }
  throw fault(
    place,
    `Auth is ${Object.keys(credentials).join(', ')}, then ", may read", "write", "mint" or "govern", not "${value}"`,
  )
}

const namesInPath = (path: string): string[] =>
  [...path.matchAll(/\/:([A-Za-z]+)/g)].map(([, name]) => name!)

const listOf = (value = ''): string[] => value.split(', ').filter(name => name !== '')

/** The list an endpoint picks from, by the part it makes of it. */
const lists = { Params: 'PathParameters', Headers: 'RequestHeaders' } as const

/** Defines an object of the fields that a list has under these names; nothing when there are none. */
function pick(
  chapter: Chapter,
  $defs: Definitions,
  part: keyof typeof lists,
  names: readonly string[],
): Reference | undefined {
  if (names.length === 0) return undefined
  requireKnown(chapter, $defs, lists[part], names)
  const name = derivedName(chapter.facts.get('Operation')!, part)
  if ($defs[name]) throw fault(chapter.place, `the name ${name} is taken`)
  const fields = names.map(field => [field, { $ref: `#/$defs/${lists[part]}/properties/${field}` }])
  $defs[name] = {
    type: 'object',
    properties: Object.fromEntries(fields) as Definitions,
    ...(part === 'Params' && { required: names }),
    additionalProperties: part === 'Headers',
  }
  return { $ref: `#/$defs/${name}` }
}

function requireKnown(
  { place }: Chapter,
  $defs: Definitions,
  list: string,
  names: readonly string[],
): void {
  const known = ($defs[list]?.properties ?? {}) as Definitions
  const unknown = names.find(name => !known[name])
  if (unknown) throw fault(place, `${unknown} is not in ${list}`)
}

function partOf({ parts }: Chapter, name: string): Part | undefined {
  const [part, second] = parts.filter(candidate => candidate.name === name)
  if (second) throw fault(second.place, `a second ${name}`)
  return part
}

/** `SearchBody`, `SearchQuery`, `SearchAnswer`; a second answer of its own is `SearchAnswer202`. */
export function partName(
  operation: string | undefined,
  { name, place }: Pick<Part, 'name' | 'place'>,
  answers: number,
): string {
  if (!operation) throw fault(place, 'the endpoint needs an Operation')
  const isAnswer = /^\d/.test(name)
  return derivedName(operation, isAnswer ? `Answer${answers > 0 ? name : ''}` : name)
}

const derivedName = (operation: string, part: string): string =>
  operation[0]!.toUpperCase() + operation.slice(1) + part

/** What a part's heading names, or what its table defines. */
function referenceOf(part: Part, operation: string, answers: number): Reference {
  const { type } = part
  const name = isResourceName(type) ? type : partName(operation, part, answers)
  return { $ref: `#/$defs/${name}` }
}

/** Whether the type in a heading is one resource as it stands, which needs no name of its own. */
export const isResourceName = (type: string | undefined): type is string =>
  type !== undefined && /^[A-Z]\w*$/.test(type)

const linesMedia = 'application/x-ndjson'

function answerOf(part: Part, operation: string, answers: number): Content {
  const named = part.words.filter(word => word.includes('/'))
  const media = named.length > 0 ? named : ['application/json']
  return { media, lines: media.includes(linesMedia), schema: referenceOf(part, operation, answers) }
}

function readAnswers(parts: readonly Part[], operation: string): Record<string, Content> {
  const answers: Record<string, Content> = {}
  for (const part of parts.filter(({ name }) => /^\d/.test(name))) {
    if (answers[part.name]) throw fault(part.place, `a second ${part.name}`)
    answers[part.name] = answerOf(part, operation, Object.keys(answers).length)
  }
  return answers
}

const mebibyte = 1024 * 1024

function readBody(chapter: Chapter, $defs: Definitions): Endpoint['body'] {
  const part = partOf(chapter, 'Body')
  const reads = chapter.facts.get('Reads')
  if (!part) {
    if (reads) throw fault(chapter.place, 'Reads needs a Body')
    return undefined
  }
  const match = /^((?:[a-z]+\/[a-z0-9.+-]+, )*)at most (\d+) MiB$/.exec(reads ?? 'at most 2 MiB')
  if (!match)
    throw fault(chapter.place, `Reads is media types, then "at most N MiB", not "${reads}"`)
  const media = match[1] ? listOf(match[1]) : ['application/json']
  const answer = answerOf(part, chapter.facts.get('Operation')!, 0)
  const name = answer.schema.$ref.split('/').at(-1)!
  const required = ($defs[name]?.required ?? []) as string[]
  return {
    media,
    lines: media.includes(linesMedia),
    bytesMax: Number(match[2]) * mebibyte,
    required: media[0] !== 'application/json' || required.length > 0,
    schema: answer.schema,
  }
}

type Traits = { open: boolean; needs: readonly Right[]; body: boolean; idempotent: boolean }

/** The statuses a chapter lists, and those that come with what the endpoint is. */
function errorsOf({ place, facts }: Chapter, { open, needs, body, idempotent }: Traits): number[] {
  const listed = listOf(facts.get('Errors')).map(status => {
    if (!/^[45]\d\d$/.test(status)) throw fault(place, `Errors: ${status} is no error status`)
    return Number(status)
  })
  const general = [400, 429, 500, 503]
  if (!open) general.push(401)
  if (needs.length > 0) general.push(403)
  if (body) general.push(413, 415)
  if (idempotent) general.push(409)
  return [...new Set([...general, ...listed])].toSorted((a, b) => a - b)
}
