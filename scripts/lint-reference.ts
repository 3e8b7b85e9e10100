import { createConfig, lintFromString } from '@redocly/openapi-core'
import { buildOpenApi, type OpenApi } from '#api/reference/openapi.ts'
import { version } from '#api/edge/version.ts'
import { parseOptions } from '#scripts/command-line.ts'

/** The problems an OpenAPI linter finds in a document, one line each. */
export async function lintOpenApi(document: OpenApi): Promise<string[]> {
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      // The schema of a stream's lines is named by an extension, which the linter does not follow.
      'no-unused-components': 'off',
    },
  })
  const problems = await lintFromString({ source: JSON.stringify(document), config })
  return problems.map(
    ({ ruleId, message, location: [place] }) => `${place?.pointer ?? '#'}: ${message} (${ruleId})`,
  )
}

const help = `Usage: npm exec -- node scripts/lint-reference.ts

Lints the OpenAPI document of the service. Exits 1 when the linter finds a problem.

  --help  this text
`

if (import.meta.main) {
  parseOptions(help, {})
  const problems = await lintOpenApi(buildOpenApi(version))
  for (const problem of problems) console.error(problem)
  console.log(`reference: ${problems.length === 0 ? 'no problems' : `${problems.length} problems`}`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
