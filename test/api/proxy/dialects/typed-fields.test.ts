import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { Refusal } from '#shared/core/errors.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'
import type { Schema } from '#shared/core/shape.ts'

/** The contract's shape of a body, checked on the few members it constrains. */

const formats = Object.keys(dialects) as ApiFormat[]

const refusalOf = (check: () => unknown): string => {
  try {
    check()
    return 'accepted'
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
}

const values = [
  'null',
  'true',
  '"text"',
  '""',
  `"${'x'.repeat(300)}"`,
  '"\\u0000 \\ud800"',
  '-1',
  '0.5',
  '17',
  '1e400',
  '[]',
  '[[1],{"a":[]}]',
  '{}',
  '{"temperature":"hot","stopSequences":5,"maxOutputTokens":[1]}',
  '{"temperature":1,"stopSequences":["a"]}',
]

for (const format of formats) {
  const { bodyShape, parseRequest } = dialects[format]
  const definition = String(bodyShape.schema.$ref).split('/').at(-1)!
  const properties = contractDocument.$defs[definition]!.properties as Record<string, Schema>
  const valid: Record<string, string> = {
    model: '"m"',
    messages: '[{"role":"user","content":"hi"}]',
    contents: '[{"parts":[{"text":"hi"}]}]',
    max_tokens: '5',
  }

  t.test(`${format}: the same answer as for the whole body`, async t => {
    let refused = 0
    for (const name of [...Object.keys(properties), 'unknown', '__proto__', 'constructor']) {
      // Switches are checked, and refused, before the shape is.
      if (
        /^memory|^(?:store|store_response|ttl|session_id|context_limit|density|embeddings)$/.test(
          name,
        )
      )
        continue
      for (const value of values) {
        const members = Object.entries(valid).filter(([other]) => other !== name)
        const written = [...members, [name, value]].map(([name, value]) => `"${name}":${value}`)
        const bodies = [
          `{${written.join()}}`,
          `{"${name}":5,${written.join()}}`,
          `{${written.join()},"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}":null}`,
        ]
        for (const body of bodies) {
          const { typedFields } = parseRequest(Buffer.from(body))
          const answer = refusalOf(() => bodyShape.check(typedFields))
          // What is forwarded may have this field; what this service takes itself may not.
          const expected =
            name === '__proto__'
              ? 'accepted'
              : refusalOf(() => bodyShape.check(sanitizeJson(JSON.parse(body))))
          t.equal(answer, expected, body)
          if (answer !== 'accepted') refused++
        }
      }
    }
    t.ok(refused > 20)
    t.equal(
      refusalOf(() => bodyShape.check(parseRequest(Buffer.from('{}')).typedFields)),
      refusalOf(() => bodyShape.check({})),
    )
  })

  t.test(
    `${format}: the shape looks into no list, and into no object but by reference`,
    async t => {
      for (const [name, property] of Object.entries(properties)) {
        const { items = {}, description: _, ...keywords } = property
        t.same(items, {}, name)
        for (const keyword of Object.keys(keywords)) {
          // The only reference is to a text.
          if (keyword === '$ref') t.equal(name, 'memory_user')
          const scalarKeywords = [
            '$ref',
            'x-contract',
            'type',
            'minLength',
            'maxLength',
            'minimum',
            'maximum',
            'enum',
          ]
          t.ok([...scalarKeywords, 'items', 'anyOf'].includes(keyword), `${name}: ${keyword}`)
        }
      }
    },
  )
}
