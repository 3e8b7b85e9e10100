import { readFileSync } from 'node:fs'

type Described = { id: string; meta: { location: string } }

/** What the service says of its SCIM; addresses are paths. */
type Description = Record<'Schemas' | 'ResourceTypes', Described[]> & {
  ServiceProviderConfig: { documentationUri: string; meta: { location: string } }
}

const text = readFileSync(new URL('schemas.json', import.meta.url), 'utf8')

/** The names of the schemas of resources. */
export const scimSchemas = {
  User: 'urn:ietf:params:scim:schemas:core:2.0:User',
  Group: 'urn:ietf:params:scim:schemas:core:2.0:Group',
}

/** What the service says of its SCIM. @param base its address */
export const describeScim = (base: string): Description =>
  JSON.parse(
    text
      .replaceAll('"location": "/', `"location": "${base}/`)
      .replace('"/guides/', `"${new URL(base).origin}/guides/`),
  ) as Description
