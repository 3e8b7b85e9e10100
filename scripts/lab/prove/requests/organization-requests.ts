import {
  note,
  answered,
  email,
  plain,
  named,
  type RequestInput,
  type RequestPlan,
} from '#scripts/lab/prove/requests/request-plan.ts'

const seed = (input: RequestInput) => ({ text: note(input), confidence: 0.3, tags: [] })

/** Requests of an admin. */
export const organizationRequests: Record<string, RequestPlan> = {
  createOrg: { ...named, isRare: true, makes: 'orgId', keeps: answered('orgId', 'org_id') },
  listOrgs: plain,
  readOrg: plain,
  changeOrg: named,
  deleteOrg: plain,
  orgUsage: plain,
  orgOverview: { query: () => ({ tags: '3' }) },
  redrivePipeline: plain,
  exportOrg: { isRare: true },
  orgPolicy: plain,
  putOrgPolicy: { body: () => ({ redaction: null }) },
  orgAudit: plain,
  debugPasses: plain,
  readInstructions: plain,
  putInstructions: { body: ({ word }) => ({ custom: `Keep what ${word} says` }) },
  // Greetings ask no model.
  tryText: { body: ({ id }) => ({ text: 'Thank you!', user_id: id('userId') }) },
  createMemberKey: {
    makes: 'keyId',
    body: input => ({ team_member_id: email(input) }),
    keeps: answered('keyId', 'id'),
  },
  listMemberKeys: plain,
  readMemberKey: plain,
  revokeMemberKey: plain,
  createRole: { ...named, makes: 'roleId', keeps: answered('roleId', 'role_id') },
  listRoles: plain,
  changeRole: { body: () => ({ allowed_tags: ['open'] }) },
  deleteRole: plain,
  createUser: {
    makes: 'userId',
    body: input => ({ email: email(input), first_name: input.word }),
    keeps: answered('userId', 'user_id'),
  },
  listUsers: plain,
  changeUser: { body: input => ({ last_name: input.word, role_ids: [input.id('roleId')] }) },
  deleteUser: plain,
  assignRoles: {
    body: ({ word, id }) => ({
      team_member_id: `${word}.assigned@example.com`,
      role_ids: [id('roleId')],
    }),
  },
  mintUserKey: plain,
  createReviewer: {
    makes: 'reviewerId',
    body: input => ({ email: email(input) }),
    keeps: answered('reviewerId', 'reviewer_id'),
  },
  readDirectory: plain,
  putDirectory: {
    body: ({ word, id }) => ({ grants: [{ group: `group of ${word}`, role_ids: [id('roleId')] }] }),
  },
  createScimToken: {
    makes: 'tokenId',
    body: ({ word }) => ({ description: `of ${word}` }),
    keeps: answered('tokenId', 'token_id'),
  },
  listScimTokens: plain,
  removeScimToken: plain,
  listReviewers: plain,
  removeReviewer: plain,
  createTag: {
    makes: 'tagId',
    body: ({ word, random }) => ({
      label: `tag ${Math.floor(random() * 1e6)} of ${word}`,
      question: `Is it about ${word}?`,
    }),
    keeps: answered('tagId', 'tag_id'),
  },
  listTags: plain,
  changeTag: { body: ({ word }) => ({ question: `Is it of ${word}?` }) },
  deleteTag: plain,
  applyTag: { body: () => ({ dry_run: true }) },
  readTagRun: plain,
  seedMemories: { makes: 'memId', body: seed, keeps: answered('memId', 'mem_id') },
  listSharedMemories: {
    query: ({ random, foreignWord }): Record<string, string> =>
      random() < 0.5 ? {} : { q: foreignWord },
  },
  searchAsMember: {
    body: ({ random, foreignWord, id }) => ({
      ...(random() < 0.5 ? { user_id: id('userId') } : { role_ids: [id('roleId')] }),
      ...(random() < 0.5 && { query: foreignWord }),
    }),
  },
  changeSharedMemory: { body: input => ({ text: note(input) }) },
  // Removed for thirty days, so that it can be restored.
  deleteSharedMemory: plain,
  memoryAudit: plain,
  memoryHistory: plain,
  restoreMemory: { body: () => ({}) },
  reviewQueue: plain,
  reviewMemory: {
    body: ({ random }) => ({ action: random() < 0.5 ? 'approve' : 'dismiss' }),
  },
  undoReview: plain,
}
