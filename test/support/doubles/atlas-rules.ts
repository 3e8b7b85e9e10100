// The requirements of MongoDB's documentation and of its search process for a `$vectorSearch` stage
// and a vector search index.
import { Binary, Double, Int32, Long, MongoServerError, ObjectId, type Document } from 'mongodb'

export type IndexDescription = { name: string; type: string; definition: { fields: Document[] } }

/** Throws an error as the server does; errors of the search process have code 8. */
export function throwServerError(message: string, code = 8): never {
  throw new MongoServerError({ message, errmsg: message, code, ok: 0 })
}

/** Checks the stage without its index. */
export function checkStage(stage: Document): void {
  knownOnly(stage, 'stage', [
    'index',
    'path',
    'queryVector',
    'filter',
    'numCandidates',
    'limit',
    'exact',
    'returnStoredSource',
  ])
  const { index, path, limit, numCandidates, exact = false, filter = {} } = stage
  for (const [name, value] of Object.entries({ index, path })) {
    if (typeof value !== 'string' || value === '')
      throwServerError(`"${name}" must be a non-empty string`)
  }
  checkInteger(limit, 'limit', 1, 2 ** 31 - 1)
  if (exact === true) {
    if (numCandidates !== undefined)
      throwServerError('numCandidates must be omitted for an exact search')
  } else {
    if (exact !== false) throwServerError('"exact" must be a boolean')
    if (numCandidates === undefined)
      throwServerError('numCandidates is required for approximate search')
    checkInteger(numCandidates, 'numCandidates', 1, 10_000)
    if (limit > numCandidates)
      throwServerError('limit should be less than or equal to numCandidates')
  }
  if (parseVector(stage.queryVector).some(value => !Number.isFinite(value)))
    throwServerError('non-finite value')
  checkFilter(filter, () => {})
}

/** Checks the stage against its index. */
export function checkStageAgainstIndex(
  { path, queryVector, filter = {} }: Document,
  { definition: { fields } }: IndexDescription,
): void {
  const field = fields.find(({ type, path: indexed }) => type === 'vector' && indexed === path)
  if (!field) throwServerError(`${path} is not indexed as vector`)
  const numbers = parseVector(queryVector)
  if (numbers.length !== field.numDimensions) {
    const { numDimensions } = field
    throwServerError(
      `vector field is indexed with ${numDimensions} but queried with ${numbers.length}`,
    )
  }
  if (numbers.every(value => value === 0))
    throwServerError('Cosine similarity needs more than a zero vector')
  const filters = new Set(fields.filter(({ type }) => type === 'filter').map(({ path }) => path))
  checkFilter(filter, name => {
    if (!filters.has(name)) throwServerError(`Path '${name}' needs to be indexed as filter`)
  })
}

/** An array of numbers or a float32 vector; an index of float32 has no results for other types. */
export function parseVector(vector: unknown): number[] {
  if (Array.isArray(vector) && vector.length > 0) {
    if (vector.every(value => typeof value === 'number')) return vector
  }
  if (vector instanceof Binary && vector.sub_type === Binary.SUBTYPE_VECTOR) {
    if (vector.buffer[0] === Binary.VECTOR_TYPE.Float32) return [...vector.toFloat32Array()]
  }
  return throwServerError('queryVector must be an array of numbers or a float32 vector')
}

function checkFilter(filter: unknown, onPath: (path: string) => void): void {
  if (!isDocument(filter)) return throwServerError('filter must be a document')
  for (const [key, value] of Object.entries(filter)) {
    if (['$and', '$or', '$nor'].includes(key)) {
      if (!Array.isArray(value) || value.length === 0)
        throwServerError(`${key} must be a non-empty array`)
      for (const clause of value) checkFilter(clause, onPath)
    } else if (key.startsWith('$')) {
      throwServerError(`${key} is not supported in a filter`)
    } else {
      onPath(key)
      if (isDocument(value)) checkOperators(value)
      else typeOf(value)
    }
  }
}

function checkOperators(operators: Document): void {
  if (Object.keys(operators).length === 0) throwServerError('at least one operator is needed')
  for (const [operator, value] of Object.entries(operators)) {
    if (['$eq', '$ne'].includes(operator)) typeOf(value)
    else if (['$gt', '$gte', '$lt', '$lte'].includes(operator)) {
      if (typeOf(value) === 'null') throwServerError(`${operator} does not compare with null`)
    } else if (['$in', '$nin'].includes(operator)) {
      if (!Array.isArray(value) || value.length === 0)
        throwServerError(`${operator} must not be empty`)
      const types = new Set(value.map(typeOf))
      if (types.has('null')) throwServerError('value type cannot be null')
      if (types.size > 1) throwServerError(`${operator} must have elements of the same type`)
    } else if (operator === '$exists') {
      if (typeof value !== 'boolean') throwServerError('$exists must be a boolean')
    } else if (operator === '$not') {
      if (!isDocument(value)) throwServerError('$not must be a document')
      checkOperators(value)
    } else {
      throwServerError(`${operator} is not supported in a filter`)
    }
  }
}

/** Documented types: boolean, date, objectId, number, string and UUID; null with `$eq` only. */
function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'boolean' || typeof value === 'string') return typeof value
  if (typeof value === 'number' && Number.isFinite(value)) return 'number'
  if (value instanceof Int32 || value instanceof Long || value instanceof Double) return 'number'
  if (value instanceof Date && !Number.isNaN(value.getTime())) return 'date'
  if (value instanceof ObjectId) return 'objectId'
  if (value instanceof Binary && value.sub_type === Binary.SUBTYPE_UUID) return 'uuid'
  return throwServerError('boolean, objectId, number, string, date, uuid, or null is needed')
}

/** Checks the description of a vector search index for `createSearchIndexes`. */
export function checkIndexDescription(
  description: Document,
): asserts description is IndexDescription {
  knownOnly(description, 'index', ['name', 'type', 'definition'])
  const { name, type, definition } = description
  if (typeof name !== 'string' || name === '') throwServerError('"name" must be a non-empty string')
  if (type !== 'vectorSearch') throwServerError('"type" must be vectorSearch')
  if (!isDocument(definition)) return throwServerError('"definition" is required')
  knownOnly(definition, 'definition', ['fields'])
  const { fields } = definition
  if (!Array.isArray(fields) || fields.length === 0) throwServerError('"fields" must not be empty')
  for (const field of fields) checkField(field)
  if (!fields.some(({ type }) => type === 'vector')) throwServerError('"fields" needs a vector')
  if (new Set(fields.map(({ path }) => path)).size < fields.length) {
    throwServerError('Vector and filter fields should have distinct paths')
  }
}

function checkField(field: Document): void {
  if (typeof field.path !== 'string' || !/^[^.$]+(\.[^.$]+)*$/.test(field.path)) {
    throwServerError('"path" must be a path')
  }
  if (field.type === 'filter') return knownOnly(field, 'filter', ['type', 'path'])
  if (field.type !== 'vector') throwServerError('"type" must be vector or filter')
  const known = ['type', 'path', 'numDimensions', 'similarity', 'quantization', 'indexingMethod']
  knownOnly(field, 'vector', known)
  const { numDimensions, similarity, quantization = 'none', indexingMethod = 'hnsw' } = field
  oneOf(indexingMethod, 'indexingMethod', ['hnsw', 'flat'])
  checkInteger(numDimensions, 'numDimensions', 1, 8_192)
  oneOf(similarity, 'similarity', ['cosine', 'euclidean', 'dotProduct'])
  oneOf(quantization, 'quantization', ['none', 'scalar', 'binary'])
}

function checkInteger(value: unknown, name: string, min: number, max: number): void {
  if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return
  throwServerError(`"${name}" must be an int within bounds [${min}, ${max}]`)
}

function oneOf(value: unknown, name: string, choices: string[]): void {
  if (!choices.some(choice => choice === value))
    throwServerError(`"${name}" must be one of ${choices.join(', ')}`)
}

function knownOnly(document: Document, name: string, known: string[]): void {
  const unknown = Object.keys(document).filter(key => !known.includes(key))
  if (unknown.length > 0) throwServerError(`unrecognized field ${unknown.join(', ')} in ${name}`)
}

/** Whether a value is a document, not another BSON value that is an object in JavaScript. */
const isDocument = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
