import { inspect } from 'node:util'
import { Binary, Decimal128, ObjectId, UUID, type Document } from 'mongodb'
import t from 'tap'
import {
  checkStageAgainstIndex,
  checkIndexDescription,
  checkStage,
} from '#test/support/doubles/atlas-rules.ts'

const dimension = 8
const numbers = Array.from({ length: dimension }, () => 0.5)
const stage = { index: 'i', path: 'p', queryVector: numbers, numCandidates: 20, limit: 5 }
const field = { type: 'vector', path: 'p', numDimensions: dimension, similarity: 'cosine' }
const index = {
  name: 'i',
  type: 'vectorSearch',
  definition: { fields: [field, { type: 'filter', path: 'a' }] },
}
const check = (change: Document) => () => {
  checkStage({ ...stage, ...change })
  checkStageAgainstIndex({ ...stage, ...change }, index)
}

t.test('what the documentation allows', async t => {
  const date = new Date(0)
  for (const filter of [
    {},
    { a: 'x' },
    { a: null },
    { a: { $eq: true, $ne: null } },
    { a: { $gte: date, $lt: date } },
    { a: { $in: [1, 2.5] } },
    { a: { $nin: [new ObjectId()] } },
    { a: { $eq: new UUID() } },
    { a: { $exists: false, $not: { $gt: 5 } } },
    { $and: [{ a: 1 }, { $or: [{ a: 2 }, { $nor: [{ a: 3 }] }] }] },
  ]) {
    t.doesNotThrow(check({ filter }), inspect(filter))
  }
  t.doesNotThrow(check({ numCandidates: undefined, exact: true }))
  t.doesNotThrow(check({ queryVector: Binary.fromFloat32Array(Float32Array.from(numbers)) }))
})

t.test('what it does not', async t => {
  for (const filter of [
    { b: 1 },
    { $and: [{ b: 1 }] },
    { $and: [] },
    { $expr: {} },
    { $text: { $search: 'x' } },
    { a: {} },
    { a: /x/ },
    { a: [1] },
    { a: undefined },
    { a: { b: 1 } },
    { a: { $regex: 'x' } },
    { a: { $eq: undefined } },
    { a: { $eq: Number.NaN } },
    { a: { $eq: new Decimal128('1') } },
    { a: { $eq: new Binary(Buffer.from('x')) } },
    { a: { $gt: null } },
    { a: { $in: [] } },
    { a: { $in: 'x' } },
    { a: { $in: [1, 'x'] } },
    { a: { $in: [null] } },
    { a: { $exists: 1 } },
    { a: { $not: 1 } },
    { a: { $type: 'string' } },
  ]) {
    t.throws(check({ filter }), { name: 'MongoServerError', code: 8 }, inspect(filter))
  }
  for (const change of [
    { index: undefined },
    { index: '' },
    { path: 5 },
    { path: 'other' },
    { path: 'a' },
    { limit: undefined },
    { limit: 0 },
    { limit: 2.5 },
    { limit: 21 },
    { numCandidates: undefined },
    { numCandidates: 10_001 },
    { exact: true },
    { exact: 1 },
    { queryVector: undefined },
    { queryVector: [] },
    { queryVector: numbers.slice(1) },
    { queryVector: numbers.map(() => 0) },
    { queryVector: numbers.map(() => Infinity) },
    { queryVector: Float32Array.from(numbers) },
    { queryVector: Binary.fromInt8Array(new Int8Array(dimension)) },
    { queryVector: new Binary(Buffer.alloc(34)) },
    { filter: [] },
    { k: 5 },
  ]) {
    t.throws(check(change), { name: 'MongoServerError' }, inspect(change))
  }
})

t.test('definitions of an index', async t => {
  t.doesNotThrow(() => checkIndexDescription(index))
  for (const change of [
    { name: undefined },
    { name: '' },
    { type: undefined },
    { type: 'search' },
    { definition: undefined },
    { definition: { mappings: { dynamic: true } } },
    { unknown: 1 },
  ]) {
    t.throws(() => checkIndexDescription({ ...index, ...change }), { name: 'MongoServerError' })
  }
  for (const change of [
    { type: 'knnVector' },
    { type: undefined },
    { path: undefined },
    { path: 'a' },
    { path: 'x..y' },
    { numDimensions: undefined },
    { numDimensions: 0 },
    { numDimensions: 8_193 },
    { numDimensions: '8' },
    { similarity: undefined },
    { similarity: 'angle' },
    { quantization: 'int8' },
    { dimensions: 8 },
  ]) {
    const fields = [
      { ...field, ...change },
      { type: 'filter', path: 'a' },
    ]
    t.throws(() => checkIndexDescription({ ...index, definition: { fields } }), {
      name: 'MongoServerError',
    })
  }
  for (const fields of [[], [{ type: 'filter', path: 'a' }], [field, field]]) {
    t.throws(() => checkIndexDescription({ ...index, definition: { fields } }))
  }
})
