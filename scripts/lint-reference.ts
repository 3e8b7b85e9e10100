import { createConfig, lintFromString } from '@redocly/openapi-core'
import { buildOpenApi, type OpenApi } from '#api/reference/openapi.ts'
import { version } from '#api/edge/version.ts'
import { parseOptions } from '#scripts/command-line.ts'

/** What an OpenAPI linter finds wrong with a document, a line each. */
export async function lintOpenApi(document: OpenApi): Promise<string[]> {
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      // The server is wherever the document came from.
      'no-empty-servers': 'off',
      // What the lines of a stream look like is named by an extension, which is not followed.
      'no-unused-components': 'off',
    },
  })
  const found = await lintFromString({ source: JSON.stringify(document), config })
  return found.map(
    ({ ruleId, message, location: [place] }) => `${place?.pointer ?? '#'}: ${message} (${ruleId})`,
  )
}

const help = `Usage: node scripts/lint-reference.ts

Checks the OpenAPI document of the service as a linter does. Exits 1 when it finds something wrong.

  --help  this text
`

if (import.meta.main) {
  parseOptions(help, {})
  const problems = await lintOpenApi(buildOpenApi(version))
  for (const problem of problems) console.error(problem)
  console.log(`reference: ${problems.length === 0 ? 'no problems' : `${problems.length} problems`}`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
