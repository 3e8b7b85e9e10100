import { compileRules } from '#shared/search/profile/rules/rule.ts'

const dutchKin =
  '(?:zus|zusje|broer|broertje|moeder|mama|vader|papa|vrouw|man|partner|vriendin|vriend|verloofde|dochter|zoon|kind|baby|nicht|neef|tante|oom|oma|opa|baas|chef|collega|huisgenoot|buurvrouw|buurman|huisbaas|huisarts|arts|hond|kat|poes|konijn|paard)'

const myDutch = '(?:mijn|onze|ons)'

export const dutch = compileRules(dutchKin, [
  { kind: 'name', cues: 'heet', pattern: 'ik heet {x}', subject: 'name', isName: true },
  {
    kind: 'name',
    cues: 'noem noemen',
    pattern: '(?:noem me (?:maar |gewoon )?|(?:mag|kunt|kan) me (?:ook |gewoon )?){x}',
    subject: 'form of address',
    isName: true,
  },
  {
    kind: 'name',
    cues: 'naam',
    pattern: 'mijn (?:volledige )?naam is {x}',
    subject: 'name',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'mijn onze ons',
    pattern: `${myDutch} {kin} (?:heet|is) {x}`,
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'mijn onze ons',
    pattern: `${myDutch} {kin},? {x}`,
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'woon wonen leef',
    pattern:
      '(?:ik (?:woon|leef)|wij wonen|we wonen) (?:nu |momenteel |sinds [^.;]{1,20}? )?(?:in|op|bij) {x}',
    subject: 'home',
  },
  { kind: 'place', cues: 'kom', pattern: 'ik kom (?:oorspronkelijk )?uit {x}', isName: true },
  {
    kind: 'place',
    cues: 'verhuisd',
    pattern: '(?:ik ben|wij zijn|we zijn) (?:[^.;]{0,40}? )?naar {x}',
    subject: 'home',
    isName: true,
  },
  {
    kind: 'role',
    cues: 'werk',
    pattern: 'ik werk (?:nu |momenteel )?als {x}',
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'werk',
    pattern: 'ik werk (?:nu |momenteel )?(?:bij|voor) {x}',
    subject: 'employer',
    isName: true,
  },
  {
    kind: 'role',
    cues: 'ben',
    pattern:
      'ik ben (?:een )?(?<value>[a-zß-ɏ]{0,20}(?:leraar|lerares|docent|arts|verpleegkundige|ingenieur|ontwikkelaar|programmeur|student|studente|advocaat|architect|journalist|boekhouder|kok|bakker|ontwerper|vertaler|muzikant|onderzoeker|dierenarts|tandarts|elektricien|kunstenaar|schrijver|fotograaf|verkoper|timmerman|gepensioneerd)){end}',
    subject: 'occupation',
  },
  { kind: 'role', cues: 'studeer', pattern: 'ik studeer {x}', subject: 'studies' },
  {
    kind: 'date',
    cues: 'verjaardag trouwdag',
    pattern: `${myDutch} (?<subject>verjaardag|trouwdag) is (?:op )?{x}`,
    subject: '{subject}',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'geboren',
    pattern: 'ik ben geboren (?:op|in) {x}',
    subject: 'date of birth',
    isDate: true,
  },
  { kind: 'date', cues: 'jaar', pattern: 'ik ben (?<value>[0-9]{1,3}) jaar', subject: 'age' },
  { kind: 'preference', cues: 'liever', pattern: 'ik [a-zß-ɏ]{2,15} liever [a-zß-ɏ]' },
  {
    kind: 'preference',
    cues: 'mijn',
    pattern: 'mijn (?<subject>(?:lievelings|favoriete )[a-zß-ɏ]{2,20}) is {x}',
    subject: '{subject}',
  },
  {
    kind: 'preference',
    cues: 'hou houd',
    pattern: 'ik houd? (?:erg |niet |heel erg )?van (?!(?:je|jou)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'hekel haat',
    pattern: 'ik (?:heb een hekel aan|haat) (?!(?:dat|dit|het)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'allergisch intolerant',
    pattern: 'ik ben (?:erg )?(?:allergisch|[a-zß-ɏ-]{0,20}intolerant)',
  },
  {
    kind: 'preference',
    cues: 'vegetariër vegetarisch veganist',
    pattern: 'ik (?:ben|eet) (?<value>vegetariër|vegetarisch|veganist|veganistisch)',
    subject: 'diet',
  },
  {
    kind: 'instruction',
    cues: 'vanaf voortaan toekomst',
    pattern: '(?:vanaf nu|voortaan|in het vervolg|in de toekomst){end}(?! (?:woon|ben))',
  },
  {
    kind: 'instruction',
    cues: 'altijd nooit',
    pattern:
      '^(?:alsjeblieft,? |en )?(?!(?:ik|wij|we|hij|zij|ze|het|de|een|je|jij|mijn|er|dat|dit|bijna|nog)(?![a-zß-ɏ]))[a-zß-ɏ]{2,15} (?:[^.;,]{1,30} )?(?:altijd|nooit){end}',
  },
  { kind: 'instruction', cues: 'stop', pattern: '^(?:alsjeblieft,? )?stop met ' },
  {
    kind: 'possession',
    cues: 'heb hebben',
    pattern:
      '(?:ik heb|wij hebben|we hebben) (?:een|twee|drie) (?:[a-zß-ɏ]{2,15} )?(?:hond|honden|kat|katten|poes|auto|fiets|motor|boot|huis|tuin|gitaar|piano|camera|paard|volvo|volkswagen){end}',
  },
  {
    kind: 'person',
    cues: 'heb hebben',
    pattern:
      '(?:ik heb|wij hebben|we hebben) (?:een|twee|drie|vier) (?:kinderen|kind|zonen|zoon|dochters?|broers?|zussen|zus){end}',
  },
  {
    kind: 'change',
    cues: 'meer',
    pattern:
      '(?:ik|wij|we)(?![a-zß-ɏ])[^.;]{1,30}(?<![a-zß-ɏ])(?:niet|geen) (?:[a-zß-ɏ]{2,20} )?meer{end}',
  },
  {
    kind: 'change',
    cues: 'gestopt',
    pattern: '(?:ik ben|wij zijn|we zijn) (?:[^.;]{0,20})?gestopt met ',
  },
  {
    kind: 'change',
    cues: 'van',
    pattern:
      '(?:ik|wij|we|de|het)(?![a-zß-ɏ])[^.;]{0,50}? van [^.;]{1,50}? naar [^.;]{1,50}(?<![a-zß-ɏ])(?:verhuisd|verplaatst|overgestapt|veranderd|verzet){end}|overgestapt van [^.;]{1,50}? naar [a-zß-ɏ]',
  },
  {
    kind: 'change',
    cues: 'meer',
    pattern: 'ik werk niet meer (?:bij|voor) {x}',
    ends: { kind: 'role', subject: 'employer' },
  },
  {
    kind: 'change',
    cues: 'meer',
    pattern: 'ik woon niet meer in {x}',
    ends: { kind: 'place', subject: 'home' },
  },
])
