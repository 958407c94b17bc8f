//! Expands the list of families to one object for each, and to the dispatch of an event to the
//! family of its kind. Dispatch compares constants instead of calling function pointers: there are
//! millions of events.

/// See [`Converter`](super::Converter) for the meaning of the functions.
macro_rules! families {
    (calls: $calls:ty, always: { $($always:ident: $always_type:ty,)* }, on_demand: { $($name:ident: $type:ty,)* }) => {
        pub(crate) mod calls;
        $(pub(crate) mod $always;)*
        $(pub(crate) mod $name;)*

        /// Families that may be left out of a recording.
        pub const FAMILIES: &[Family] = &[$(<$type as Converter>::FAMILY,)*];

        /// All families.
        const ALL: &[Family] =
            &[<$calls as Converter>::FAMILY, $(<$always_type as Converter>::FAMILY,)* $(<$type as Converter>::FAMILY,)*];

        // Each kind belongs to one family.
        const _: () = {
            let (mut bits, mut index) = (0, 0);
            while index < ALL.len() {
                assert!(bits & ALL[index].kind_bits() == 0, "two families have events of one kind");
                bits |= ALL[index].kind_bits();
                index += 1;
            }
        };

        /// All families except the system calls.
        #[derive(Default)]
        struct Others { $($always: $always_type,)* $($name: $type,)* }

        impl Others {
            #[inline]
            fn call(
                &mut self, call: &Call<'_>, shape: Shape, row: &mut CallRow, conversion: &mut Conversion<'_>,
            ) -> Result<(), BpfError> {
                $(self.$always.call(call, shape, row, conversion)?;)*
                $(self.$name.call(call, shape, row, conversion)?;)*
                Ok(())
            }
        }

        /// An object of each family.
        #[derive(Default)]
        pub(crate) struct Families { calls: $calls, others: Others }

        impl Families {
            /// Whether an event is whole; `None`: no family knows its kind.
            #[inline]
            pub(crate) fn is_whole(event: &Raw<'_>) -> Option<bool> {
                if has::<$calls>(event) {
                    return Some(<$calls as Converter>::is_whole(event));
                }
                $(if has::<$always_type>(event) { return Some(<$always_type as Converter>::is_whole(event)); })*
                $(if has::<$type>(event) { return Some(<$type as Converter>::is_whole(event)); })*
                None
            }

            /// Time of an event, if it has one.
            #[inline]
            pub(crate) fn at_ns(event: &Raw<'_>) -> Option<u64> {
                if has::<$calls>(event) {
                    return <$calls as Converter>::at_ns(event);
                }
                $(if has::<$always_type>(event) { return <$always_type as Converter>::at_ns(event); })*
                $(if has::<$type>(event) { return <$type as Converter>::at_ns(event); })*
                None
            }

            pub(crate) fn begins(&mut self, start: &Start, places: &mut Places) {
                self.calls.begins(start, places);
                $(self.others.$always.begins(start, places);)*
                $(self.others.$name.begins(start, places);)*
            }

            #[inline]
            pub(crate) fn survey(&mut self, event: &Raw<'_>, places: &mut Places) {
                if has::<$calls>(event) {
                    return self.calls.survey(event, places);
                }
                $(if has::<$always_type>(event) { return self.others.$always.survey(event, places); })*
                $(if has::<$type>(event) { return self.others.$name.survey(event, places); })*
            }

            #[inline]
            pub(crate) fn event(
                &mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>,
            ) -> Result<(), BpfError> {
                let Families { calls, others } = self;
                if has::<$calls>(event) {
                    return calls.convert(event, at_ns, conversion, &mut |call, shape, row, conversion| {
                        others.call(call, shape, row, conversion)
                    });
                }
                $(if has::<$always_type>(event) {
                    others.$always.event(event, at_ns, conversion)?;
                    return calls.after(conversion);
                })*
                $(if has::<$type>(event) { return others.$name.event(event, at_ns, conversion); })*
                Ok(())
            }

            /// The family of system calls.
            pub(crate) fn calls(&mut self) -> &mut $calls {
                &mut self.calls
            }

            pub(crate) fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
                self.calls.finish(conversion)?;
                $(self.others.$always.finish(conversion)?;)*
                $(self.others.$name.finish(conversion)?;)*
                Ok(())
            }
        }

        /// Whether an event is of a family's kinds.
        #[inline]
        fn has<F: Converter>(event: &Raw<'_>) -> bool {
            event.kind < 32 && F::KIND_BITS >> event.kind & 1 != 0
        }
    };
}
