import { type Subsection, specificationError } from '#scripts/contract/parse-markdown.ts'
import type { Reference, Content } from '#api/contract/document.ts'
import type { Schema } from '#shared/core/shape.ts'

/** `SearchBody`, `SearchQuery`, `SearchAnswer`; the second answer of an endpoint is `SearchAnswer202`. */
export function definitionName(
  operation: string | undefined,
  { name, position }: Pick<Subsection, 'name' | 'position'>,
  answers: number,
): string {
  if (!operation) throw specificationError(position, 'the endpoint needs an Operation')
  const isAnswer = /^\d/.test(name)
  return derivedName(operation, isAnswer ? `Answer${answers > 0 ? name : ''}` : name)
}

export const derivedName = (operation: string, part: string): string =>
  operation[0]!.toUpperCase() + operation.slice(1) + part

/** A reference to the type in the heading of a part, or to the definition of its table. */
export function buildReference(part: Subsection, operation: string, answers: number): Reference {
  const { type } = part
  const name = isResourceName(type) ? type : definitionName(operation, part, answers)
  return { $ref: `#/$defs/${name}` }
}

/** Whether the type in a heading is a plain resource name, which needs no derived name. */
export const isResourceName = (type: string | undefined): type is string =>
  type !== undefined && /^[A-Z]\w*$/.test(type)

export const ndjsonMediaType = 'application/x-ndjson'

export function readContent(part: Subsection, operation: string, answers: number): Content {
  const named = part.modifiers.filter(word => word.includes('/'))
  const media = named.length > 0 ? named : ['application/json']
  return {
    media,
    lines: media.includes(ndjsonMediaType),
    schema: buildReference(part, operation, answers),
  }
}

export function readAnswers(
  parts: readonly Subsection[],
  operation: string,
): Record<string, Content> {
  const answers: Record<string, Content> = {}
  for (const part of parts.filter(({ name }) => /^\d/.test(name))) {
    if (answers[part.name]) throw specificationError(part.position, `a second ${part.name}`)
    answers[part.name] = readContent(part, operation, Object.keys(answers).length)
  }
  return answers
}

export const referredName = ({ $ref }: Reference): string => $ref.split('/').at(-1)!

/**
 * The headers that tell what of a request was not taken as it was sent: unknown names, and numbers above bounds.
 *
 * @param inputs query and body
 */
export function inputNoteHeaders(
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
