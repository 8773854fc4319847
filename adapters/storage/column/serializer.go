package column

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm/schema"
)

// A row that differs from a value of the domain in its tags alone converts to it and back.
// The serializer "micros" keeps a time.Time as Micros does.
func init() { schema.RegisterSerializer("micros", microsSerializer{}) }

type microsSerializer struct{}

// Scan implements schema.SerializerInterface.
func (microsSerializer) Scan(ctx context.Context, field *schema.Field, row reflect.Value, stored any) error {
	n, ok := stored.(int64)
	if !ok {
		return fmt.Errorf("%s is a %T, not a time", field.Name, stored)
	}
	field.ReflectValueOf(ctx, row).Set(reflect.ValueOf(Time(n)))
	return nil
}

// Value implements schema.SerializerInterface.
func (microsSerializer) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	return Micros(value.(time.Time)), nil
}
