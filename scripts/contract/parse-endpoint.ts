import type {
  Content,
  Credential,
  Effect,
  Endpoint,
  KeyRight,
  Reference,
} from '#api/contract/document.ts'
import { fail, type Section, type Subsection } from '#scripts/contract/parse-markdown.ts'
import type { Schema } from '#shared/core/shape.ts'

type Definitions = Record<string, Schema>

/**
 * Parses one endpoint from its chapter. The parameters and headers it picks from the lists become a
 * definition, such as `SearchHeaders`, which is added to `$defs`.
 *
 * @throws Error with the missing or faulty part.
 */
export function parseEndpoint(chapter: Section, $defs: Definitions): Endpoint {
  const { title, position, attributes, paragraphs, subsections } = chapter
  const match = /^(GET|POST|PUT|PATCH|DELETE) (\/\S*)$/.exec(title)
  if (!match) fail(position, 'is neither an endpoint nor a resource')
  const [, method, path] = match
  const operation = attributes.get('Operation')
  if (!operation || !/^[a-z][A-Za-z]+$/.test(operation)) {
    fail(position, 'needs an Operation in camelCase')
  }
  const description = paragraphs.join('\n')
  if (!description) fail(position, 'says nothing about itself')
  if (chapter.rows.length > 0) fail(position, 'its tables stand under ### headings')
  if (attributes.has('Is')) fail(position, 'Is belongs to resources')
  for (const part of subsections) assertKnownModifiers(part, $defs)

  const { auth, needs, quiet } = readAuth(chapter)
  const namesUsers = auth.includes('memory-key') && takesUsers(needs, $defs)
  const requestHeaders = [...splitList(attributes.get('Takes')), ...(namesUsers ? userHeaders : [])]
  const answerHeaders = splitList(attributes.get('Sends')).map(name => name.toLowerCase())
  assertListed(chapter, $defs, 'AnswerHeaders', answerHeaders)
  const params = definePickedObject(chapter, $defs, 'Params', pathParameterNames(path!))
  const headers = definePickedObject(
    chapter,
    $defs,
    'Headers',
    requestHeaders.map(name => name.toLowerCase()),
  )
  const queryPart = findSubsection(chapter, 'Query')
  const query = queryPart && buildReference(queryPart, operation, 0)
  const body = readBody(chapter, $defs)
  const effect = readEffect(chapter, method!)
  const answers = readAnswers(subsections, operation)
  if (Object.keys(answers).length === 0) fail(position, 'has no answer')
  const idempotent = requestHeaders.includes('Idempotency-Key')
  return {
    operation,
    method: method!,
    path: path!,
    summary: description.split(/(?<=\.)\s/, 1)[0]!,
    description,
    effect,
    auth,
    needs,
    ...(quiet && { quiet }),
    ...(chapter.modifiers.includes('ours') && { ours: true }),
    ...(params && { params }),
    ...(query && { query }),
    ...(headers && { headers }),
    ...(body && { body }),
    answers,
    sends: [...answerHeaders, ...inputNoteHeaders(auth.length > 0, [query, body?.schema], $defs)],
    errors: errorStatuses(chapter, {
      open: auth.length === 0,
      needs,
      namesUsers,
      body: body !== undefined || effect === 'changes',
      idempotent,
    }),
  }
}

const effects: readonly string[] = ['reads', 'stores', 'changes', 'forwards'] satisfies Effect[]

/** What `Effect` says; of a `GET`, which reads, nothing. */
function readEffect({ position, attributes }: Section, method: string): Effect {
  const said = attributes.get('Effect')
  if (method === 'GET' && said !== undefined) fail(position, 'a GET reads, so it has no Effect')
  const effect = method === 'GET' ? 'reads' : (said ?? '')
  if (!effects.includes(effect)) fail(position, `needs an Effect: ${effects.join(', ')}`)
  if (!['GET', 'POST'].includes(method) && effect !== 'changes')
    fail(position, `a ${method} changes something`)
  return effect as Effect
}

function assertKnownModifiers({ position, modifiers, type }: Subsection, $defs: Definitions): void {
  const unknownModifier = modifiers.find(
    word => word !== 'open' && !/^[a-z]+\/[a-z0-9.+-]+$/.test(word),
  )
  if (unknownModifier) fail(position, `(${unknownModifier}) is neither open nor a media type`)
  if (!isResourceName(type)) return
  if (!$defs[type]) fail(position, `unknown type ${type}`)
  if (modifiers.includes('open')) fail(position, `whether ${type} is open, its own heading says`)
}

const userHeaders = ['X-Memory-User', 'X-Memory-User-From']

/** What a Memory Key opens without acting for its account, it opens for a user whom an owner key names. */
const takesUsers = (needs: readonly KeyRight[], $defs: Definitions): boolean =>
  !needs.includes('govern') &&
  !needs.includes('mint') &&
  userHeaders.every(
    name => name.toLowerCase() in (($defs.RequestHeaders?.properties ?? {}) as Definitions),
  )

const quietSuffix = ', else nothing'

const credentialsByName: Record<string, Credential[]> = {
  none: [],
  'Memory Key': ['memory-key'],
  admin: ['admin'],
  'Memory Key or admin': ['memory-key', 'admin'],
}

function readAuth({
  position,
  attributes,
}: Section): Pick<Endpoint, 'auth' | 'needs'> & { quiet: boolean } {
  const value = attributes.get('Auth') ?? ''
  const quiet = value.endsWith(quietSuffix)
  const [name = '', rights = ''] = value.replace(quietSuffix, '').split(', may ')
  const auth = credentialsByName[name]
  const needs = rights === '' ? [] : rights.split(' and ')
  const known = needs.every(right => ['read', 'write', 'mint', 'govern'].includes(right))
  if (auth && known && (needs.length === 0 || auth.includes('memory-key'))) {
    return { auth, needs: needs as KeyRight[], quiet }
  }
  fail(
    position,
    `Auth is ${Object.keys(credentialsByName).join(', ')}, then ", may read", "write", "mint" or "govern", not "${value}"`,
  )
}

const pathParameterNames = (path: string): string[] =>
  [...path.matchAll(/\/:([A-Za-z]+)/g)].map(([, name]) => name!)

const splitList = (value = ''): string[] => value.split(', ').filter(name => name !== '')

/** The list to pick from, by the part of the endpoint. */
const sourceLists = { Params: 'PathParameters', Headers: 'RequestHeaders' } as const

/** Defines an object of the named fields of a list. @returns undefined without names. */
function definePickedObject(
  chapter: Section,
  $defs: Definitions,
  part: keyof typeof sourceLists,
  names: readonly string[],
): Reference | undefined {
  if (names.length === 0) return undefined
  assertListed(chapter, $defs, sourceLists[part], names)
  const name = derivedName(chapter.attributes.get('Operation')!, part)
  if ($defs[name]) fail(chapter.position, `the name ${name} is taken`)
  const fields = names.map(field => [
    field,
    { $ref: `#/$defs/${sourceLists[part]}/properties/${field}` },
  ])
  $defs[name] = {
    type: 'object',
    properties: Object.fromEntries(fields) as Definitions,
    ...(part === 'Params' && { required: names }),
    additionalProperties: part === 'Headers',
  }
  return { $ref: `#/$defs/${name}` }
}

function assertListed(
  { position }: Section,
  $defs: Definitions,
  list: string,
  names: readonly string[],
): void {
  const known = ($defs[list]?.properties ?? {}) as Definitions
  const unknown = names.find(name => !known[name])
  if (unknown) fail(position, `${unknown} is not in ${list}`)
}

function findSubsection({ subsections }: Section, name: string): Subsection | undefined {
  const [part, second] = subsections.filter(candidate => candidate.name === name)
  if (second) fail(second.position, `a second ${name}`)
  return part
}

const mebibyte = 1024 * 1024

function readBody(chapter: Section, $defs: Definitions): Endpoint['body'] {
  const part = findSubsection(chapter, 'Body')
  const bodyRule = chapter.attributes.get('Reads')
  if (!part) {
    if (bodyRule) fail(chapter.position, 'Reads needs a Body')
    return undefined
  }
  const match = /^((?:[a-z]+\/[a-z0-9.+-]+, )*)at most (\d+) MiB$/.exec(bodyRule ?? 'at most 2 MiB')
  if (!match)
    fail(chapter.position, `Reads is media types, then "at most N MiB", not "${bodyRule}"`)
  const media = match[1] ? splitList(match[1]) : ['application/json']
  const answer = readContent(part, chapter.attributes.get('Operation')!, 0)
  const name = referredName(answer.schema)
  const required = ($defs[name]?.required ?? []) as string[]
  return {
    media,
    lines: media.includes(ndjsonMediaType),
    bytesMax: Number(match[2]) * mebibyte,
    required: media[0] !== 'application/json' || required.length > 0,
    schema: answer.schema,
  }
}

/** The statuses a chapter lists, and those that follow from the traits of the endpoint. */
function errorStatuses(
  { position, attributes }: Section,
  traits: {
    open: boolean
    needs: readonly KeyRight[]
    namesUsers: boolean
    body: boolean
    idempotent: boolean
  },
): number[] {
  const { open, needs, namesUsers, body, idempotent } = traits
  const listed = splitList(attributes.get('Errors')).map(status => {
    if (!/^[45]\d\d$/.test(status)) fail(position, `Errors: ${status} is no error status`)
    return Number(status)
  })
  const general = [400, 429, 500, 503]
  if (!open) general.push(401)
  if (needs.length > 0 || namesUsers) general.push(403)
  if (namesUsers) general.push(404)
  if (body) general.push(413, 415)
  if (idempotent) general.push(409)
  return [...new Set([...general, ...listed])].toSorted((a, b) => a - b)
}

/** `SearchBody`, `SearchQuery`, `SearchAnswer`; the second answer of an endpoint is `SearchAnswer202`. */
export function definitionName(
  operation: string | undefined,
  { name, position }: Pick<Subsection, 'name' | 'position'>,
  answers: number,
): string {
  if (!operation) fail(position, 'the endpoint needs an Operation')
  const isAnswer = /^\d/.test(name)
  return derivedName(operation, isAnswer ? `Answer${answers > 0 ? name : ''}` : name)
}

const derivedName = (operation: string, part: string): string =>
  operation[0]!.toUpperCase() + operation.slice(1) + part

/** A reference to the type in the heading of a part, or to the definition of its table. */
function buildReference(part: Subsection, operation: string, answers: number): Reference {
  const { type } = part
  const name = isResourceName(type) ? type : definitionName(operation, part, answers)
  return { $ref: `#/$defs/${name}` }
}

/** Whether the type in a heading is a plain resource name, which needs no derived name. */
export const isResourceName = (type: string | undefined): type is string =>
  type !== undefined && /^[A-Z]\w*$/.test(type)

const ndjsonMediaType = 'application/x-ndjson'

function readContent(part: Subsection, operation: string, answers: number): Content {
  const named = part.modifiers.filter(word => word.includes('/'))
  const media = named.length > 0 ? named : ['application/json']
  return {
    media,
    lines: media.includes(ndjsonMediaType),
    schema: buildReference(part, operation, answers),
  }
}

function readAnswers(parts: readonly Subsection[], operation: string): Record<string, Content> {
  const answers: Record<string, Content> = {}
  for (const part of parts.filter(({ name }) => /^\d/.test(name))) {
    if (answers[part.name]) fail(part.position, `a second ${part.name}`)
    answers[part.name] = readContent(part, operation, Object.keys(answers).length)
  }
  return answers
}

const referredName = ({ $ref }: Reference): string => $ref.split('/').at(-1)!

/**
 * The headers that tell what of a request was not taken as it was sent: unknown names, and numbers above bounds.
 *
 * @param inputs query and body
 */
function inputNoteHeaders(
  needsKey: boolean,
  inputs: readonly (Reference | undefined)[],
  $defs: Record<string, Schema>,
): string[] {
  const listed = ($defs.AnswerHeaders?.properties ?? {}) as Record<string, Schema>
  const schemas = inputs.flatMap(input => (input ? [$defs[referredName(input)]!] : []))
  const isOwn = needsKey && schemas.every(schema => schema.additionalProperties !== true)
  const clamps = schemas.some(({ properties = {} }) =>
    Object.values(properties as Record<string, Schema>).some(field => field['x-clamped'] === true),
  )
  return [
    ...(isOwn ? ['x-memory-ignored-fields'] : []),
    ...(clamps ? ['x-memory-clamped'] : []),
  ].filter(name => name in listed)
}
